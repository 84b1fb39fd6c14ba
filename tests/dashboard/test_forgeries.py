"""Every form as another site would have it sent, or another browser, or by looking; made of the pages themselves: all are refused, with
the cookie of somebody who may, and nothing is done."""

import pytest

from lateshift.dashboard.session import form_proof
from lateshift.model.access import Scope
from lateshift.testing import Kit
from tests.dashboard.attic import Attic, kept
from tests.dashboard.browsing import OWN, Browser
from tests.dashboard.callers import Callers
from tests.dashboard.filled import FORMS, Form, sent
from tests.dashboard.test_forms import CROSS

LOOKING = ("GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.path)
def test_no_form_does_anything_unless_this_browser_was_given_it_by_a_page_of_ours(
    form: Form, stranger: Browser, kit: Kit
) -> None:
    callers, attic = Callers(stranger, kit), Attic(kit)
    filled = sent(form, attic)
    path = filled.path(form.path)
    may, other = (callers.signed_in(name, [Scope.ADMIN]) for name in ("may", "other"))
    before = kept(attic.store)
    for proof in (
        "",
        "0" * 64,
        form_proof(other),
        form_proof(may)[:-1],
        form_proof(may).upper(),
        form_proof(""),
    ):
        assert callers.send(path, may, filled.fields, proof=proof).status_code == 403, proof
    for headers in CROSS:
        assert callers.send(path, may, filled.fields, headers=headers).status_code == 403, headers
    for method in LOOKING:
        override = OWN | {"X-HTTP-Method-Override": "POST"}
        answer = callers.send(path, may, filled.fields, method=method, headers=override)
        assert answer.status_code in (400, 404, 405, 422), method  # 400: who looks has no body
    typed = dict(filled.fields) | {"proof": form_proof(may), "_method": "POST"}
    assert callers.ask("GET", path, may, typed).status_code in (404, 405, 422)
    assert kept(attic.store) == before
    assert callers.send(path, may, filled.fields).status_code in (200, 303)
    assert (kept(attic.store) == before) is form.only_shows

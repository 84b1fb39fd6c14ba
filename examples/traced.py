"""Traces with OpenTelemetry: run `lateshift up examples/traced.py`, and `python examples/traced.py` beside it. The request, its
job in a process of its own and the job that this one enqueues are one trace. Needs `pip install 'lateshift[otel]' opentelemetry-sdk`."""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from lateshift import Lateshift

provider = TracerProvider()
provider.add_span_processor(
    SimpleSpanProcessor(ConsoleSpanExporter(formatter=lambda span: span.to_json(None) + "\n"))
)
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("shop")

app = Lateshift("shop")


@app.task(queue="mail")
async def thank(order: int) -> None: ...


@app.task(queue="images", process=True)
def draw(order: int) -> None:
    with tracer.start_as_current_span("draw"):
        thank.enqueue(order)


if __name__ == "__main__":
    with tracer.start_as_current_span("request"):
        draw.enqueue(7)

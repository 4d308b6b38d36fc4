"""The Celery worker: the same circuit again. A task that is refused comes back when the circuit may let it through.

celery --app worker worker
"""

from __future__ import annotations

import os
from urllib.parse import quote
from urllib.request import urlopen

from celery import Celery, Task
from redis import Redis
from switchgear import Refusal
from switchgear.redis import DistributedCircuitBreaker, RedisStore

REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
PROCESSOR_URL = os.environ["PROCESSOR_URL"]

app = Celery("worker", broker=REDIS_URL, backend=REDIS_URL)
billing = DistributedCircuitBreaker(
    "billing",
    RedisStore(Redis.from_url(REDIS_URL), prefix="shop:", timeout_ms=int(os.environ.get("STORE_TIMEOUT_MS", "100"))),
    trip_on="consecutive",
    failure_threshold=3,
    open_duration_ms=int(os.environ.get("OPEN_MS", "10000")),
)


@app.task(bind=True, max_retries=20)
def charge(self: Task, order: str) -> str:
    try:
        return billing.execute(lambda: charge_card(order))
    except Refusal as refusal:
        raise self.retry(exc=refusal, countdown=refusal.retry_after) from refusal


def charge_card(order: str) -> str:
    with urlopen(f"{PROCESSOR_URL}/charge?order={quote(order)}") as response:
        response.read()
    return f"charged order {order}"

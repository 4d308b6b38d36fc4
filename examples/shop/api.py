"""The service in FastAPI: the same circuit as the one in NestJS, on asyncio.

uvicorn api:app
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from celery import Celery
from celery.result import AsyncResult
from fastapi import FastAPI
from redis.asyncio import Redis
from switchgear import Refusal
from switchgear.redis.asyncio import DistributedCircuitBreaker, RedisStore
from switchgear.starlette import circuit_open_handler

REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379")
PROCESSOR_URL = os.environ["PROCESSOR_URL"]

redis = Redis.from_url(REDIS_URL)
store = RedisStore(redis, prefix="shop:", timeout_ms=int(os.environ.get("STORE_TIMEOUT_MS", "100")))
billing = DistributedCircuitBreaker(
    "billing",
    store,
    trip_on="consecutive",
    failure_threshold=3,
    open_duration_ms=int(os.environ.get("OPEN_MS", "10000")),
)
processor = httpx.AsyncClient()
worker = Celery(broker=REDIS_URL, backend=REDIS_URL)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    yield
    await store.close()
    await redis.aclose()
    await processor.aclose()


app = FastAPI(lifespan=lifespan)
app.add_exception_handler(Refusal, circuit_open_handler)  # 503 with Retry-After


@app.get("/charge/{order}")
@billing
async def charge(order: str) -> dict[str, str]:
    response = await processor.get(f"{PROCESSOR_URL}/charge", params={"order": order})
    response.raise_for_status()
    return {"outcome": f"charged order {order}"}


@app.post("/charge/{order}/later")
async def charge_later(order: str) -> dict[str, str]:
    return {"task": worker.send_task("worker.charge", [order]).id}


@app.get("/tasks/{task}")
async def task_status(task: str) -> dict[str, str]:
    return {"status": AsyncResult(task, app=worker).status}

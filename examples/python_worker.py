#!/usr/bin/env python3
"""A worker that shares no code with nqueens: leases jobs of the plans `rows` and `border`, and counts them (boards.py)
on one core. docs/protocol.md explains what it does and why. While its coordinator is away it waits; it has no spool.

    pip install grpcio-tools
    nqueens doctor --protocol --json > protocol.json
    NQUEENS_TOKEN=... python3 examples/python_worker.py head:7327 protocol.json

SIGTERM or Ctrl-C: it returns the jobs that it has not counted, and ends.
"""
import json
import os
import random
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import grpc

import boards

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "proto"))
messages, services = grpc.protos_and_services("nqueens/v1/worker.proto")

ENGINE = "python-dicts"
# A guess, in states a second, until a job was counted.
FIRST_SPEED = 50_000
JOBS_MAX = 100
# Errors that trying again does not mend.
FINAL = {grpc.StatusCode[name] for name in
         ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "UNAUTHENTICATED", "PERMISSION_DENIED", "UNIMPLEMENTED")}


class Stopped(Exception):
    """There is a reason not to go on with this job."""


class Worker:
    def __init__(self, address, protocol):
        self.stub = services.WorkerServiceStub(grpc.insecure_channel(address))
        token = os.environ.get("NQUEENS_TOKEN")
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self.leases, self.results, self.returned, self.current = {}, [], [], None
        self.states, self.speed, self.next_sync, self.stop = 0, FIRST_SPEED, 0.0, threading.Event()
        self.registration = messages.RegisterRequest(
            protocol_version=protocol["protocol"], plans=bytes.fromhex(protocol["plans"]), instance=os.urandom(16),
            name=socket.gethostname()[:64], build="python_worker 1", kernels=[ENGINE], threads=1,
            capability=messages.Capability(family=ENGINE, device="python", states_per_s=FIRST_SPEED))
        self.session = self.call(self.stub.Register, self.registration)

    def call(self, method, request):
        """Makes the same call until it is answered: both calls can be repeated."""
        pause = 0.1
        while True:
            try:
                return method(request, metadata=self.metadata, timeout=30)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.NOT_FOUND and request is not self.registration:
                    self.session = self.call(self.stub.Register, self.registration)
                    request.worker_id, request.secret = self.session.worker_id, self.session.secret
                elif error.code() in FINAL or (self.stop.is_set() and pause > 5):
                    sys.exit(f"{error.code().name}: {error.details()}")
                time.sleep(pause * random.uniform(1, 2))
                pause = min(2 * pause, 10)

    def sync(self, wanted_jobs=0):
        """Tells everything, which is also the heartbeat, and does what the coordinator says."""
        asked = time.monotonic()
        held = [messages.HeldLease(token=lease.token, states=self.states if key == self.current else 0)
                for key, lease in self.leases.items()]
        answer = self.call(self.stub.Sync, messages.SyncRequest(
            worker_id=self.session.worker_id, secret=self.session.secret, results=self.results, held=held,
            returned=self.returned, wanted_states=2 * self.speed if wanted_jobs else 0, wanted_jobs=wanted_jobs))
        for ack in answer.acks:
            if ack.verdict != messages.VERDICT_ACCEPTED:
                print(f"job {ack.token.job}: {messages.Verdict.Name(ack.verdict)} {ack.reason}", file=sys.stderr)
        self.results, self.returned = [], []
        self.leases |= {lease.token.SerializeToString(): lease for lease in answer.leases}
        for token in answer.revoked:
            self.leases.pop(token.SerializeToString(), None)
        if answer.drain:
            self.stop.set()
        self.next_sync = asked + answer.next_sync_ms / 1000

    def tick(self, states):
        """Sends a heartbeat if one is due. Ends the current job if it is revoked, or the worker is to stop."""
        self.states = states
        if time.monotonic() >= self.next_sync:
            self.sync()
        if self.stop.is_set() or self.current not in self.leases:
            raise Stopped

    def count(self, lease):
        """Counts a job, and has its result reported."""
        began, began_cpu = time.monotonic(), time.thread_time()
        self.tick(0)
        job = lease.n, getattr(lease, "class"), lease.bound1, lease.prefixes, lease.states
        parts, states = boards.count(*job, self.tick)
        count2, count4, count8 = map(sum, zip(*parts))
        seconds, cpu_seconds = time.monotonic() - began, time.thread_time() - began_cpu
        self.speed = max(int(lease.states / max(seconds, 1e-6)), 1)
        # A job of one part has no parts. The fourth number of a part is for classes that count plain solutions.
        told = [number for part in parts for number in (*part, 0)] if len(parts) > 1 else []
        self.results.append(messages.JobResult(
            token=lease.token, count2=count2, count4=count4, count8=count8, parts=told,
            kernel=ENGINE, states=states, elapsed_us=int(1e6 * seconds), cpu_us=int(1e6 * cpu_seconds)))
        del self.leases[self.current]

    def work(self):
        """Counts until it is told to stop; then returns what it has not counted. The exit code, or what went wrong."""
        failure = None
        while not self.stop.is_set():
            if not self.leases:
                has_news = bool(self.results)
                self.sync(wanted_jobs=JOBS_MAX)
                if not self.leases and not has_news:
                    self.stop.wait(max(self.next_sync - time.monotonic(), 0))
                continue
            self.current, lease = next(iter(self.leases.items()))
            if getattr(lease, "class") not in ("corner", "edge", "border"):
                failure = f"this worker can't count jobs of class {getattr(lease, 'class')}"
                break
            try:
                self.count(lease)
            except Stopped:
                pass
        self.current = None
        while self.leases or self.results:
            self.returned = [messages.ReturnedLease(token=lease.token) for lease in self.leases.values()]
            self.leases = {}
            self.sync()
        return failure


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    worker = Worker(sys.argv[1], json.loads(Path(sys.argv[2]).read_text()))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop.set())
    sys.exit(worker.work())

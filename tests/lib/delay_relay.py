# SPDX-License-Identifier: Apache-2.0
"""A process that forwards connections and can delay what they send, in both directions: where there is no netem.

    python3 delay_relay.py SEED PORT=ADDRESS:PORT ...

Prints "ready", and reads from standard input the longest delay in seconds, one a line; it ends with it. Each message is delayed by a random time
up to that, and none overtakes another one of its connection. A delay that becomes shorter also counts for messages on their way.
"""
import asyncio
import os
import random
import sys

BUFFER = 1 << 16


class Relay:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.delay = 0.0
        self.changed = asyncio.Event()

    async def until(self, begun, wanted):
        """Waits until a message that came at `begun` is due, `wanted` of the longest delay after it."""
        loop = asyncio.get_running_loop()
        while (left := begun + wanted * self.delay - loop.time()) > 0:
            try:
                await asyncio.wait_for(self.changed.wait(), left)
            except asyncio.TimeoutError:
                return

    async def take(self, reader, queue):
        loop = asyncio.get_running_loop()
        data = b"-"
        while data:
            try:
                data = await reader.read(BUFFER)
            except OSError:
                data = b""
            await queue.put((loop.time(), self.random.random(), data))

    async def deliver(self, queue, writer):
        data = b"-"
        while data:
            begun, wanted, data = await queue.get()
            await self.until(begun, wanted)
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                pass  # the other direction ends, too
        writer.close()

    async def forward(self, reader, writer):
        queue = asyncio.Queue(64)
        await asyncio.gather(self.take(reader, queue), self.deliver(queue, writer))

    async def accept(self, address, reader, writer):
        try:
            far = await asyncio.open_connection(*address)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self.forward(reader, far[1]), self.forward(far[0], writer))

    def change(self, delay):
        self.delay = delay
        self.changed.set()
        self.changed = asyncio.Event()


async def main(seed, *routes):
    relay = Relay(seed)
    loop = asyncio.get_running_loop()
    servers = []
    for route in routes:
        port, target = route.split("=")
        address = target.split(":")
        servers.append(await asyncio.start_server(lambda near, to, address=address: relay.accept(address, near, to), "127.0.0.1", int(port)))
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        relay.change(float(line))
    os._exit(0)  # connections end with it


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""The network of brokers and nodes: a proxy before each port of a broker, which knows whose process connects. It cuts and delays."""

import asyncio
import pathlib
import threading


def inode_of(port):
    """Returns the inode of the socket on this machine with this local port."""
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port and fields[9] != "0":
                return fields[9]
    return None


def has_socket(pid, inode):
    try:
        return any(entry.readlink().name == f"socket:[{inode}]" for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


class Links:
    """All proxies, in a thread. A process is cut by its pid: what it sends and what is sent to it arrives only when it is mended."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.cut_pids, self.cut_targets = set(), set()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def add(self, target, listen, upstream):
        """Starts a proxy before a port of `target`."""
        async def serve():
            handler = lambda reader, writer: self.connect(target, upstream, reader, writer)
            await asyncio.start_server(handler, "127.0.0.1", listen)
        asyncio.run_coroutine_threadsafe(serve(), self.loop).result(10)

    async def connect(self, target, upstream, reader, writer):
        inode = await asyncio.to_thread(inode_of, writer.get_extra_info("peername")[1])
        link = {"target": target, "inode": inode}
        try:
            await self.passes(link)
            there, to_there = await asyncio.open_connection("127.0.0.1", upstream)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self.copy(link, reader, to_there), self.copy(link, there, writer))

    def is_cut(self, link):
        if link["target"] in self.cut_targets:
            return True
        return any(has_socket(pid, link["inode"]) for pid in list(self.cut_pids))

    async def passes(self, link):
        """Returns when bytes may pass."""
        if not self.cut_targets and not self.cut_pids:
            return
        while self.is_cut(link):
            await asyncio.sleep(0.05)

    async def copy(self, link, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                await self.passes(link)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    def cut(self, pid=None, target=None):
        """Cuts the connections of a process or a target: no data from or to it arrives until `mend`."""
        self.cut_pids |= {pid} - {None}
        self.cut_targets |= {target} - {None}

    def mend(self):
        self.cut_pids, self.cut_targets = set(), set()

    def close(self):
        async def end():
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
        asyncio.run_coroutine_threadsafe(end(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

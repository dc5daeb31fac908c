"""An MCP server that does what real ones do on bad days. Its words are the tools of integrations/mcp/tests/mcp."""

import os
import sys

if "dies-at-start" in sys.argv:
    print("first line", file=sys.stderr)
    print(f"no key, only {os.environ.get('KEY')}", file=sys.stderr)
    sys.exit(3)

import asyncio
import subprocess

from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

server = MCPServer("bad-days")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def process() -> str:
    """The id of this process."""
    return str(os.getpid())


@server.tool()
async def die() -> str:
    """Ends this process in the middle of the call."""
    os._exit(7)


@server.tool()
async def fail() -> str:
    """Fails."""
    raise ValueError("on purpose")


@server.tool(structured_output=False)
async def long(size: int) -> str:
    """A text of that many bytes, with a beginning and an end."""
    return "begin" + "x" * (size - 8) + "end"


@server.tool(structured_output=False)
async def variables() -> str:
    """The variables of this process."""
    return "\n".join(f"{name}={value}" for name, value in os.environ.items())


@server.tool()
async def silent(place: str) -> str:
    """Says nothing and never answers. Notes at that place that it has begun, and that it was cancelled."""
    note(place, "begun")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        note(place, "cancelled")
        raise


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
async def again(place: str) -> str:
    """Does not answer until it is called a second time."""
    if not os.path.exists(place):
        note(place, "begun")
        await asyncio.Event().wait()
    return "again"


@server.tool()
async def busy(steps: int, context: Context) -> str:
    """Tells of its progress every 100 ms."""
    for step in range(steps):
        await asyncio.sleep(0.1)
        await context.report_progress(step + 1, steps, f"step {step + 1}")
    return "well"


@server.tool()
async def speak(context: Context) -> str:
    """Logs something."""
    await context.info("something", logger_name="mouth")
    return "spoken"


@server.tool()
async def grow(context: Context) -> str:
    """Adds the tool `grown`, and says so."""

    async def grown() -> str:
        """Was not here before."""
        return "grown"

    server.add_tool(grown, name="grown")
    await context.notify_tools_changed()
    return "will be there"


@server.tool()
async def shrink(context: Context) -> str:
    """Takes `grow` away, and says so."""
    server.remove_tool("grow")
    await context.notify_tools_changed()
    return "is gone"


@server.tool()
async def child() -> str:
    """Starts a process that does not care what becomes of this one, and returns its id."""
    process = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return str(process.pid)


class Room(BaseModel):
    """What a person is asked for."""

    guests: int = Field(title="Guests", ge=1, le=4)
    breakfast: bool = Field(default=False)


async def which_room() -> Elicit[Room]:
    """Asks for a room."""
    return Elicit(f"Which room? {os.environ.get('KEY', '')}".strip(), Room)


@server.tool()
async def book(room: Annotated[Room, Resolve(which_room)]) -> str:
    """Asks which room, and books it."""
    return f"{room.guests} guests, breakfast: {room.breakfast}"


def note(place: str, what: str) -> None:
    with open(place, "a", encoding="utf-8") as file:
        file.write(what + "\n")


if "http" in sys.argv:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[-1]))
else:
    server.run()

"""The desk: takes every call to a dialect from the gateway to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aiohttp import web

from safelight.lab.answers import hang_up, withhold
from safelight.lab.gateway import CUT, through_gateway
from safelight.lab.job import Job
from safelight.lab.situations import UnknownWay
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.fields import Fault
from safelight.lab.speech.reply import Refused, Reply, Stream
from safelight.lab.speech.routes import Route
from safelight.lab.studio import Studio
from safelight.lab.submits import Submit

NO_SUCH_WAY = 501


class Desk:
    """Serves every dialect."""

    def __init__(self, dialects: Mapping[str, Dialect], studio: Studio, keys: Mapping[str, Job]) -> None:
        self._dialects = dialects
        self._studio = studio
        self._keys = keys

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Any call below a dialect's prefix."""
        dialect = self._dialects[request.match_info["dialect"]]
        call = Call(request, path=f"/{request.match_info['path']}", body=await request.read(), at={})
        route = _route(dialect, call)
        if route is None:
            return dialect.nowhere(call).response()

        async def ask() -> web.StreamResponse:
            return await self._ask(dialect, call, route)

        return await through_gateway(request, ask, name=dialect.name, role=route.role, studio=self._studio)

    async def _ask(self, dialect: Dialect, call: Call, route: Route) -> web.StreamResponse:
        try:
            reply = await self._reply(dialect, call, route)
        except Refused as refused:
            reply = refused.reply
        except Fault as fault:
            reply = dialect.fault(fault)
        except UnknownWay as mistake:
            reply = Reply(NO_SUCH_WAY, f"lab: {mistake}", content_type="text/plain")
        if reply is None:
            return web.Response()  # reaches nobody: the connection is broken
        return await _streamed(call, reply) if isinstance(reply, Stream) else reply.response()

    async def _reply(self, dialect: Dialect, call: Call, route: Route) -> Reply | Stream | None:
        if not route.is_open:
            await dialect.authenticate(call)
        do = getattr(dialect, route.do)
        if route.role != "submit":
            self._refuse_if_told(dialect, route)
            reply: Reply | Stream = await do(call)
            return reply
        submit: Submit = await do(call)
        self._refuse_if_told(dialect, route)
        return await self._submitted(dialect, call, submit)

    def _refuse_if_told(self, dialect: Dialect, route: Route) -> None:
        refusal = self._studio.moods.refusal(dialect.name, route.role)
        if refusal is not None:
            raise dialect.refused(*refusal)

    async def _submitted(self, dialect: Dialect, call: Call, submit: Submit) -> Reply | Stream | None:
        key = None if submit.key is None else f"{dialect.name}:{submit.key}"
        known = self._keys.get(key) if key is not None else None
        if known is not None:
            return await dialect.repeated(call, submit, known)
        submit = replace(
            submit, dialect=dialect.name, key=key, id=submit.id or dialect.new_id(), given=call.given()
        )
        job = await self._studio.accept(submit)
        if await withhold(call.request, job, self._studio):
            return None
        return await dialect.answer(call, job)


def _route(dialect: Dialect, call: Call) -> Route | None:
    for route in dialect.routes:
        match = route.pattern.fullmatch(call.path) if route.method == call.method else None
        if match is None:
            continue
        call.at = match.groupdict()
        if route.when is None or route.when(call):
            return route
    return None


async def _streamed(call: Call, stream: Stream) -> web.StreamResponse:
    response = web.StreamResponse(headers=stream.headers)
    response.content_type = "text/event-stream"
    await response.prepare(call.request)
    cut = call.request.get(CUT)
    async for event in stream.events:
        await response.write(event[: len(event) * 2 // 3] if cut == "truncated_json" else event)
        if cut == "reset_after_head":
            hang_up(call.request)
        if cut is not None:
            break
    return response

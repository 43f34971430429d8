"""``approval/*``."""

from typing import Any

from callboard_rpc.approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalGetParams,
    ApprovalListParams,
    ApprovalResult,
    Rule,
    RuleAddParams,
    RuleListParams,
    RuleRemoveParams,
    RuleResult,
)
from callboard_rpc.common import Page, RuleId

from ...host import Host
from ..call import Call, Handler
from ..pages import invalid, number, page_size, sized, text
from .client import actor_of


def handlers(host: Host) -> dict[str, Handler]:
    items = host.settings.limits.page_items

    async def list_(_: Call, params: ApprovalListParams) -> dict[str, Any]:
        begin = number(params.cursor, 0)

        async def fetch(limit: int) -> tuple[list[Approval], str | None]:
            page, after = await host.approvals.page(
                state=params.state, session_id=params.session_id, after=begin, limit=limit
            )
            return page, text(after)

        return await sized(fetch, page_size(params.limit, items), host.settings.limits.page_bytes)

    async def get(_: Call, params: ApprovalGetParams) -> ApprovalResult:
        return ApprovalResult(approval=await host.approvals.get(params.approval_id))

    async def answer(call: Call, params: ApprovalAnswerParams) -> ApprovalResult:
        approval = await host.approvals.answer(
            params.approval_id,
            params.option_id,
            by=actor_of(call),
            via="method",
            feedback=params.feedback,
        )
        return ApprovalResult(approval=approval)

    async def rule_list(_: Call, params: RuleListParams) -> Page[Rule]:
        page, after = await host.approvals.rules(
            scope=params.scope,
            session_id=params.session_id,
            after=params.cursor or "",
            limit=page_size(params.limit, items),
        )
        return Page(data=tuple(page), next_cursor=after)

    async def rule_add(call: Call, params: RuleAddParams) -> RuleResult:
        if params.scope == "session":
            if params.session_id is None:
                raise invalid("$.sessionId", "is required for a rule of one session")
            session = await host.reading.session(params.session_id)
            if params.effect == "allow" and session.parent_id is not None:
                raise invalid(
                    "$.sessionId",
                    "is an agent's, which may do no more than its parent: allow it for the root session "
                    f"{session.root_id}, or refuse it to others",
                )
        if params.scope == "workspace" and params.workspace is None:
            raise invalid("$.workspace", "is required for a rule of one workspace")
        rule = Rule(
            rule_id=RuleId(host.log.ids.new("rule")),
            scope=params.scope,
            effect=params.effect,
            tool=params.tool,
            pattern=params.pattern,
            session_id=params.session_id if params.scope == "session" else None,
            workspace=params.workspace if params.scope == "workspace" else None,
            created_at=host.log.now(),
            by=actor_of(call),
        )
        return RuleResult(rule=await host.approvals.add_rule(rule))

    async def rule_remove(_: Call, params: RuleRemoveParams) -> RuleResult:
        return RuleResult(rule=await host.approvals.remove_rule(params.rule_id))

    return {
        "approval/list": list_,
        "approval/get": get,
        "approval/answer": answer,
        "approval/ruleList": rule_list,
        "approval/ruleAdd": rule_add,
        "approval/ruleRemove": rule_remove,
    }

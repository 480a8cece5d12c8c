//! Describes the paths of protocols: A2A, S2's envelope, and MCP.
//!
//! The bodies of A2A and MCP belong to their specifications. They are described as JSON objects, with a link.

use api::Problem;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    paths(
        agents,
        agent_card,
        json_rpc,
        send_message,
        stream_message,
        list_tasks,
        get_task,
        cancel_task,
        subscribe,
        set_push,
        list_push,
        get_push,
        delete_push,
        extended_card,
        file,
        envelope,
        default_agent_card,
        mcp_call,
        mcp_stream,
        mcp_end,
    ),
    tags(
        (
            name = "a2a",
            description = "The Agent2Agent protocol, versions 0.3 and 1.x. A request without `A2A-Version` uses 0.3. gRPC is served on the same port.",
            external_docs(url = "https://a2a-protocol.org/latest/specification/")
        ),
        (
            name = "mcp",
            description = "The Model Context Protocol over Streamable HTTP.",
            external_docs(url = "https://modelcontextprotocol.io/specification/latest")
        ),
    )
)]
pub(super) struct Protocols;

/// Declares the description of a path. The function is never called.
macro_rules! path {
    ($(#[$about:meta])* $name:ident, $($path:tt)*) => {
        $(#[$about])*
        #[utoipa::path($($path)*)]
        #[expect(dead_code, reason = "carries a description")]
        fn $name() {}
    };
}

path! {
    /// Lists the cards of the agents that the caller may see.
    agents,
    get,
    path = "/agents",
    tag = "a2a",
    responses(
        (status = 200, description = "`{agents, count, next_cursor}`", body = Object),
        (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
    )
}

path! {
    /// Returns the card of an agent.
    agent_card,
    get,
    path = "/agents/{agent}/.well-known/agent-card.json",
    tag = "a2a",
    params(("agent" = String, Path)),
    responses((status = 200, description = "An AgentCard", body = Object), (status = "default", description = "An error of A2A", body = Object))
}

path! {
    /// Returns the card of the default agent (`a2a.default_agent`).
    default_agent_card,
    get,
    path = "/.well-known/agent-card.json",
    tag = "a2a",
    responses((status = 200, description = "An AgentCard", body = Object), (status = "default", description = "An error of A2A", body = Object))
}

path! {
    /// Calls any method of A2A by JSON-RPC 2.0.
    ///
    /// Streaming methods respond with server-sent events.
    json_rpc,
    post,
    path = "/agents/{agent}",
    tag = "a2a",
    params(("agent" = String, Path)),
    request_body = Object,
    responses(
        (status = 200, description = "A JSON-RPC response", content((Object = "application/json"), (String = "text/event-stream"))),
        (status = "default", description = "A JSON-RPC response with an error", body = Object),
    )
}

path! {
    /// Sends a message.
    ///
    /// It starts a task, or continues one that requires input.
    send_message,
    post,
    path = "/agents/{agent}/v1/message:send",
    tag = "a2a",
    params(("agent" = String, Path)),
    request_body = Object,
    responses((status = 200, description = "A Task or a Message", body = Object), (status = "default", description = "An error of A2A", body = Object))
}

path! {
    /// Sends a message and streams the updates of its task.
    stream_message,
    post,
    path = "/agents/{agent}/v1/message:stream",
    tag = "a2a",
    params(("agent" = String, Path)),
    request_body = Object,
    responses(
        (status = 200, description = "Updates", body = String, content_type = "text/event-stream"),
        (status = "default", description = "An error of A2A", body = Object),
    )
}

path! {
    /// Lists tasks.
    list_tasks,
    get,
    path = "/agents/{agent}/v1/tasks",
    tag = "a2a",
    params(("agent" = String, Path)),
    responses((status = 200, description = "A page of tasks", body = Object), (status = "default", description = "An error of A2A", body = Object))
}

path! {
    /// Returns a task.
    get_task,
    get,
    path = "/agents/{agent}/v1/tasks/{task}",
    tag = "a2a",
    params(("agent" = String, Path), ("task" = String, Path)),
    responses((status = 200, description = "A Task", body = Object), (status = "default", description = "An error of A2A", body = Object))
}

path! {
    /// Cancels a task.
    cancel_task,
    post,
    path = "/agents/{agent}/v1/tasks/{task}:cancel",
    tag = "a2a",
    params(("agent" = String, Path), ("task" = String, Path)),
    responses((status = 200, description = "The Task", body = Object), (status = "default", description = "An error of A2A", body = Object))
}

path! {
    /// Streams the updates of a task that has not ended.
    subscribe,
    get,
    path = "/agents/{agent}/v1/tasks/{task}:subscribe",
    tag = "a2a",
    params(("agent" = String, Path), ("task" = String, Path)),
    responses(
        (status = 200, description = "Updates", body = String, content_type = "text/event-stream"),
        (status = "default", description = "An error of A2A", body = Object),
    )
}

path! {
    /// Registers a callback for the updates of a task.
    set_push,
    post,
    path = "/agents/{agent}/v1/tasks/{task}/pushNotificationConfigs",
    tag = "a2a",
    params(("agent" = String, Path), ("task" = String, Path)),
    request_body = Object,
    responses((status = 200, description = "The configuration", body = Object), (status = "default", description = "An error of A2A", body = Object))
}

path! {
    /// Lists the callbacks of a task.
    list_push,
    get,
    path = "/agents/{agent}/v1/tasks/{task}/pushNotificationConfigs",
    tag = "a2a",
    params(("agent" = String, Path), ("task" = String, Path)),
    responses((status = 200, description = "The configurations", body = Value), (status = "default", description = "An error of A2A", body = Object))
}

path! {
    /// Returns one callback of a task.
    get_push,
    get,
    path = "/agents/{agent}/v1/tasks/{task}/pushNotificationConfigs/{config}",
    tag = "a2a",
    params(("agent" = String, Path), ("task" = String, Path), ("config" = String, Path)),
    responses((status = 200, description = "The configuration", body = Object), (status = "default", description = "An error of A2A", body = Object))
}

path! {
    /// Removes a callback of a task.
    delete_push,
    delete,
    path = "/agents/{agent}/v1/tasks/{task}/pushNotificationConfigs/{config}",
    tag = "a2a",
    params(("agent" = String, Path), ("task" = String, Path), ("config" = String, Path)),
    responses((status = 200, description = "The configuration was removed", body = Object), (status = "default", description = "An error of A2A", body = Object))
}

path! {
    /// Returns the card that only authenticated callers see.
    extended_card,
    get,
    path = "/agents/{agent}/v1/extendedAgentCard",
    tag = "a2a",
    params(("agent" = String, Path)),
    responses((status = 200, description = "An AgentCard", body = Object), (status = "default", description = "An error of A2A", body = Object))
}

path! {
    /// Returns a file of a task that is too large for a message.
    file,
    get,
    path = "/agents/{agent}/files/{execution}/{name}",
    tag = "a2a",
    params(("agent" = String, Path), ("execution" = Uuid, Path), ("name" = String, Path)),
    responses(
        (status = 200, description = "The file", body = String, content_type = "application/octet-stream"),
        (status = "default", description = "A problem", body = Problem, content_type = "application/problem+json"),
    )
}

path! {
    /// Sends one message in the envelope format and returns the answer.
    ///
    /// `type: "stream"` streams it as server-sent events.
    envelope,
    post,
    path = "/agents/{agent}/v1/envelope",
    tag = "a2a",
    params(("agent" = String, Path)),
    request_body = Object,
    responses(
        (status = 200, description = "An envelope: `response` or `error`", content((Object = "application/json"), (String = "text/event-stream"))),
        (status = "default", description = "An envelope with the reason of the rejection", body = Object),
    )
}

path! {
    /// Sends a message of MCP.
    mcp_call,
    post,
    path = "/mcp",
    tag = "mcp",
    request_body = Object,
    responses(
        (status = 200, description = "The response", content((Object = "application/json"), (String = "text/event-stream"))),
        (status = 202, description = "The notification was accepted"),
        (status = "default", description = "An error"),
    )
}

path! {
    /// Opens the stream for messages of the server in a session.
    mcp_stream,
    get,
    path = "/mcp",
    tag = "mcp",
    responses(
        (status = 200, description = "Messages of the server", body = String, content_type = "text/event-stream"),
        (status = "default", description = "An error"),
    )
}

path! {
    /// Ends a session.
    mcp_end,
    delete,
    path = "/mcp",
    tag = "mcp",
    responses((status = 200, description = "The session has ended"), (status = "default", description = "An error"))
}

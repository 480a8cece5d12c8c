//! The keys of a `[[mcp_servers]]`.

use crate::config::tables::{self, Section, Shape, key};

/// Which servers a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Every,
    /// Those that are programs.
    Command,
    /// Those that are somewhere else.
    Url,
}

pub(crate) type Key = tables::Key<Of>;

const SECONDS: Shape = Shape::Number { default: 60, min: 1, max: 600 };

/// Every key there is, in the order of the template.
pub(crate) const KEYS: &[Key] = &[
    key("name", Of::Every, Shape::Text, "\"notes\"", "Its name here: letters, digits, - and _."),
    key("command", Of::Command, Shape::Text, "\"uvx\"", "The program that is started and spoken to."),
    key("args", Of::Command, Shape::List, "[\"notes-server\"]", "What the program is started with."),
    key(
        "env",
        Of::Command,
        Shape::Table,
        "{ NOTES_DIR = \"/srv/notes\", NOTES_TOKEN = \"env:NOTES_TOKEN\" }",
        "Variables of the program; secrets as references.",
    ),
    key("working_directory", Of::Command, Shape::Text, "\"/tmp\"", "Where the program works."),
    key("url", Of::Url, Shape::Text, "\"https://search.example/mcp\"", "Instead of a program: where the server is."),
    key("token", Of::Url, Shape::Secret, "\"env:SEARCH_TOKEN\"", "Sent as `Authorization: Bearer …`."),
    key("headers", Of::Url, Shape::Table, "{ X-Team = \"blue\" }", "Sent along; secrets as references."),
    key("allow", Of::Every, Shape::List, "[\"*\"]", "Which of its tools are taken."),
    key("deny", Of::Every, Shape::List, "[\"drop_*\"]", "Which of them are left out, even if allowed."),
    key("ask", Of::Every, Shape::List, "[\"send_*\"]", "Which tools the user is always asked about."),
    key("never_ask", Of::Every, Shape::List, "[\"read_*\"]", "Which tools the user is never asked about."),
    key("trust", Of::Every, Shape::Flag, "false", "Whether to believe what it says about its tools being harmless."),
    key("protocol", Of::Every, Shape::Text, "\"auto\"", "legacy (until 2025-11-25), modern, or auto: found by trying."),
    key("start_timeout_seconds", Of::Every, SECONDS, "60", "How long it may take to start."),
    key("call_timeout_seconds", Of::Every, SECONDS, "60", "How long a tool may be silent."),
    key(
        "max_result_bytes",
        Of::Every,
        Shape::Number { default: 50_000, min: 1000, max: 10_000_000 },
        "50000",
        "How much of a result is taken.",
    ),
    key("enabled", Of::Every, Shape::Flag, "true", "false leaves the server out."),
];

pub(crate) const SECTION: Section<Of> = Section {
    name: "mcp_servers",
    wrong: "every MCP server is a [[mcp_servers]] of its own, with a name",
    keys: KEYS,
    aliases: &[
        ("cwd", "working_directory"),
        ("directory", "working_directory"),
        ("environment", "env"),
        ("envs", "env"),
        ("timeout", "call_timeout_seconds"),
        ("timeout_seconds", "call_timeout_seconds"),
        ("disabled", "enabled"),
        ("trusted", "trust"),
    ],
};

//! Tests of `[[mcp_servers]]`.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tools::mcp_client::{McpServerSettings, McpTransport, ProtocolEra};

use super::load;
use crate::config::mcp_servers::describe;

fn servers(file: &str, variables: &[(&str, &str)]) -> Vec<McpServerSettings> {
    load(file, variables, None).unwrap().mcp_servers
}

fn mistakes(file: &str, variables: &[(&str, &str)]) -> Vec<String> {
    load(file, variables, None).unwrap_err()
}

fn plain(pairs: &[(String, SecretString)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect()
}

#[test]
fn programs_and_urls_are_read_with_all_settings() {
    // TASK-3
    let dir = tempfile::tempdir().unwrap();
    let file = format!(
        "\
[[mcp_servers]]
name = \"notes\"
command = \"uvx\"
args = [\"notes-server\", \"--quiet\"]
working_directory = \"{}\"
allow = [\"*\"]
deny = [\"drop_*\"]
ask = [\"send_*\"]
never_ask = [\"read_*\", \"list\"]
trust = true
protocol = \"legacy\"
start_timeout_seconds = 1
call_timeout_seconds = 600
max_result_bytes = 1000
enabled = true
[mcp_servers.env]
NOTES_DIR = \"/srv/notes\"
NOTES_TOKEN = \"env:TOKEN\"
MONKEY = \"banana\"

[[mcp_servers]]
name = \"search-2\"
url = \"https://search.example/mcp/?q=1\"
token = \"env:TOKEN\"
headers = {{ X-Team = \"blue\", X-Api-Key = \"env:TOKEN\" }}
protocol = \"modern\"

[server]
listen = \"127.0.0.1:1\"
",
        dir.path().display()
    );
    let found = servers(&file, &[("TOKEN", "t-1")]);
    let [notes, search] = found.as_slice() else { panic!("{found:?}") };

    assert_eq!(notes.name, "notes");
    let McpTransport::Child { command, args, variables, directory } = &notes.transport else { panic!("{notes:?}") };
    assert_eq!((command.as_str(), args.as_slice()), ("uvx", ["notes-server", "--quiet"].map(str::to_owned).as_slice()));
    let mut variables = plain(variables);
    variables.sort_unstable();
    assert_eq!(variables, [("MONKEY", "banana"), ("NOTES_DIR", "/srv/notes"), ("NOTES_TOKEN", "t-1")]);
    assert_eq!(directory.as_deref(), Some(dir.path()));
    assert_eq!((&notes.allow[..], &notes.deny[..]), (&["*".to_owned()][..], &["drop_*".to_owned()][..]));
    assert_eq!((&notes.ask[..], notes.never_ask.len()), (&["send_*".to_owned()][..], 2));
    assert!(notes.trusted && notes.era == Some(ProtocolEra::Legacy) && notes.max_result_bytes == 1000);
    assert_eq!((notes.start_timeout, notes.call_timeout), (Duration::from_secs(1), Duration::from_secs(600)));
    assert_eq!(describe(notes), "uvx notes-server --quiet");

    let McpTransport::Http { url, headers } = &search.transport else { panic!("{search:?}") };
    assert_eq!(url, "https://search.example/mcp/?q=1", "the slash at the end is kept");
    let mut headers = plain(headers);
    headers.sort_unstable();
    assert_eq!(headers, [("Authorization", "Bearer t-1"), ("X-Api-Key", "t-1"), ("X-Team", "blue")]);
    assert!(!search.trusted && search.era == Some(ProtocolEra::Modern) && search.max_result_bytes == 50_000);
    assert_eq!((search.start_timeout, search.call_timeout), (Duration::from_secs(60), Duration::from_secs(60)));
    assert_eq!(describe(search), "https://search.example/mcp/", "the query may contain a secret");

    let config = load(&file, &[("TOKEN", "hunter2")], None).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn disabled_servers_are_skipped_and_their_secrets_are_not_resolved() {
    let file = "\
[[mcp_servers]]
name = \"notes\"
command = \"uvx\"
env = { TOKEN = \"env:NOT_SET\" }
working_directory = \"/does/not/exist\"
enabled = false
[[mcp_servers]]
name = \"far\"
url = \"https://far.example/mcp\"
token = \"env:NOT_SET\"
headers = { Cookie = \"file:/does/not/exist\" }
enabled = false
[[mcp_servers]]
name = \"notes\"
command = \"npx\"
";
    let found = servers(file, &[]);
    assert_eq!(found.iter().map(describe).collect::<Vec<_>>(), ["npx"], "the name of a disabled server can be used");
    let wrong = file.replace("env:NOT_SET", "hunter2");
    let mistakes = mistakes(&wrong, &[]);
    assert_eq!(mistakes.len(), 2, "plain secrets are rejected: {mistakes:?}");
}

#[test]
fn every_mistake_is_reported_with_the_server_and_the_line() {
    let file = "\
[[mcp_servers]]
name = \"notes\"
comand = \"uvx\"
args = \"notes-server\"
trust = \"yes\"
call_timeout_seconds = 0
start_timeout_seconds = \"soon\"
max_result_bytes = 10

[[mcp_servers]]
command = \"x\"
url = \"https://x.example\"

[[mcp_servers]]
name = \"not a name\"
command = \"x\"
token = \"env:T\"
headers = { A = \"b\" }
protocol = \"new\"
allow = [\"\"]
deny = [\"a b\"]
cwd = \"/tmp\"

[[mcp_servers]]
name = \"Adjutant\"
url = \"https://x.example\"
args = [\"a\"]
env = { A = \"b\" }
working_directory = \"/tmp\"

[[mcp_servers]]
name = \"secrets\"
command = \"x\"
working_directory = \"/does/not/exist\"
[mcp_servers.env]
API_KEY = \"hunter2\"
GITHUB_TOKEN = \"hunter2\"
DB_PASSWORD_OLD = \"hunter2\"
MY_SECRET = \"hunter2\"
B = \"env:NOT_SET\"
C = \"file:/does/not/exist\"

[[mcp_servers]]
name = \"secrets\"
url = \"http://user:hunter2@x.example\"
token = \"hunter2\"
[mcp_servers.headers]
Authorization = \"Bearer hunter2\"
\"a b\" = \"c\"

[[mcp_servers]]
name = 5
command = 6

[[mcp_servers]]
name = \"plain\"
url = \"http://x.example/mcp\"
token = \"env:T\"
headers = { authorization = \"env:T\" }

[[mcp_servers]]
name = \"nowhere\"
url = \"x.example/mcp\"
env = [\"A=b\"]
";
    let expected = [
        "1: mcp_servers[notes] needs command or url",
        "3: unknown setting mcp_servers[notes].comand; did you mean command?",
        "4: mcp_servers[notes].args must be a list of strings",
        "5: mcp_servers[notes].trust must be true or false",
        "6: mcp_servers[notes].call_timeout_seconds must be between 1 and 600, not 0",
        "7: mcp_servers[notes].start_timeout_seconds must be a whole number",
        "8: mcp_servers[notes].max_result_bytes must be between 1000 and 10000000, not 10",
        "10: mcp_servers[2] needs a name",
        "10: mcp_servers[2] has command and url: choose one",
        "15: mcp_servers[not a name].name must be 1 to 32 letters, digits, - or _, not 'not a name'",
        "17: mcp_servers[not a name].token requires url, not command",
        "18: mcp_servers[not a name].headers requires url, not command",
        "19: mcp_servers[not a name].protocol must be one of auto, legacy, modern, not 'new'",
        "20: mcp_servers[not a name].allow has an entry that must be the name of a tool, with * as wildcard, not ''",
        "21: mcp_servers[not a name].deny has an entry that must be the name of a tool, with * as wildcard, not 'a b'",
        "22: unknown setting mcp_servers[not a name].cwd; did you mean working_directory?",
        "25: mcp_servers[Adjutant].name is reserved: choose another name",
        "27: mcp_servers[Adjutant].args requires command, not url",
        "28: mcp_servers[Adjutant].env requires command, not url",
        "29: mcp_servers[Adjutant].working_directory requires command, not url",
        "34: mcp_servers[secrets].working_directory must be a directory; /does/not/exist is not",
        "36: mcp_servers[secrets].env.API_KEY must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
        "37: mcp_servers[secrets].env.GITHUB_TOKEN must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
        "38: mcp_servers[secrets].env.DB_PASSWORD_OLD must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
        "39: mcp_servers[secrets].env.MY_SECRET must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
        "40: mcp_servers[secrets].env.B refers to the variable NOT_SET, which is not set",
        "41: mcp_servers[secrets].env.C refers to the file /does/not/exist, which cannot be read: No such file or \
         directory (os error 2)",
        "44: mcp_servers[secrets].name is already used by the MCP server at adjutant.toml:31",
        "45: mcp_servers[secrets].url contains a user or a password: remove it and configure a key or a header",
        "46: mcp_servers[secrets].token must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
        "48: mcp_servers[secrets].headers.Authorization must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
        "49: mcp_servers[secrets].headers.a b is not a valid header name",
        "52: mcp_servers[7].name must be a string in quotes",
        "53: mcp_servers[7].command must be a string in quotes",
        "57: mcp_servers[plain].url would send the key unencrypted: use https:// (http:// only to this machine or a \
         private network)",
        "58: mcp_servers[plain].token conflicts with headers.Authorization: choose one",
        "63: mcp_servers[nowhere].url must be a URL such as https://search.example/mcp",
        "64: mcp_servers[nowhere].env must be a table of strings such as { NAME = \"value\" }",
        "64: mcp_servers[nowhere].env requires command, not url",
    ];
    let mistakes = mistakes(file, &[("T", "t")]);
    assert_eq!(mistakes, expected.map(|mistake| format!("adjutant.toml:{mistake}")));
    assert!(!mistakes.concat().contains("hunter2"), "a message contains the secret");
}

#[test]
fn other_syntaxes_are_rejected_with_the_expected_one() {
    let wrong = "every MCP server must be a separate [[mcp_servers]] with a name";
    let cases = [
        ("[mcp_servers]\nname = \"x\"\n", format!("adjutant.toml:1: {wrong}")),
        ("[mcp_servers.notes]\ncommand = \"x\"\n", format!("adjutant.toml:1: {wrong}")),
        ("mcp_servers = [\"uvx notes\"]\n", format!("adjutant.toml:1: {wrong}")),
        ("mcp_servers = true\n", format!("adjutant.toml:1: {wrong}")),
        (
            "[[mcp_server]]\nname = \"x\"\n",
            "adjutant.toml:1: unknown setting mcp_server; did you mean mcp_servers?".to_owned(),
        ),
    ];
    for (file, expected) in cases {
        assert_eq!(mistakes(file, &[]), [expected], "{file}");
    }
    assert_eq!(servers("mcp_servers = [{ name = \"x\", command = \"y\" }]\n", &[]).len(), 1);
    assert_eq!(servers("mcp_servers = []\n", &[]).len(), 0);
    assert_eq!(
        mistakes("", &[("ADJUTANT_MCP_SERVERS__0__NAME", "x")]),
        [
            "ADJUTANT_MCP_SERVERS__0__NAME: MCP servers must be in the file, as [[mcp_servers]]; variables cannot add or \
          change them"
        ]
    );
}

#[test]
fn secrets_are_detected_by_their_format() {
    let file = "[[mcp_servers]]\nname = \"x\"\ncommand = \"y\"\n\
                env = { DATABASE_URL = \"postgres://me:hunter2@db/x\", HOME_PAGE = \"https://me.example\" }\n";
    let mistakes = mistakes(file, &[]);
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    assert!(mistakes[0].contains("env.DATABASE_URL must be a reference, not the secret"), "{mistakes:?}");
}

#[test]
fn secrets_in_arguments_are_not_shown() {
    let file = "[[mcp_servers]]\nname = \"x\"\ncommand = \"y\"\nargs = [\"--password=hunter2\", \"-v\"]\n";
    assert!(!describe(&servers(file, &[])[0]).contains("hunter2"));
}

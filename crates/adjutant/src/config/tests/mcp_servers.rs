//! `[[mcp_servers]]`: what they become, and what is refused.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tools::foreign::{Era, Settings, Transport};

use super::load;
use crate::config::mcp_servers::described;

fn servers(file: &str, variables: &[(&str, &str)]) -> Vec<Settings> {
    load(file, variables, None).unwrap().mcp_servers
}

fn mistakes(file: &str, variables: &[(&str, &str)]) -> Vec<String> {
    load(file, variables, None).unwrap_err()
}

fn plain(pairs: &[(String, SecretString)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect()
}

#[test]
fn a_program_and_an_address_with_every_key() {
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
    let Transport::Child { command, args, variables, directory } = &notes.transport else { panic!("{notes:?}") };
    assert_eq!((command.as_str(), args.as_slice()), ("uvx", ["notes-server", "--quiet"].map(str::to_owned).as_slice()));
    let mut variables = plain(variables);
    variables.sort_unstable();
    assert_eq!(variables, [("MONKEY", "banana"), ("NOTES_DIR", "/srv/notes"), ("NOTES_TOKEN", "t-1")]);
    assert_eq!(directory.as_deref(), Some(dir.path()));
    assert_eq!((&notes.allow[..], &notes.deny[..]), (&["*".to_owned()][..], &["drop_*".to_owned()][..]));
    assert_eq!((&notes.ask[..], notes.never_ask.len()), (&["send_*".to_owned()][..], 2));
    assert!(notes.trusted && notes.era == Some(Era::Legacy) && notes.max_result_bytes == 1000);
    assert_eq!((notes.start_timeout, notes.call_timeout), (Duration::from_secs(1), Duration::from_secs(600)));
    assert_eq!(described(notes), "uvx notes-server --quiet");

    let Transport::Http { url, headers } = &search.transport else { panic!("{search:?}") };
    assert_eq!(url, "https://search.example/mcp/?q=1", "to some servers the slash matters");
    let mut headers = plain(headers);
    headers.sort_unstable();
    assert_eq!(headers, [("Authorization", "Bearer t-1"), ("X-Api-Key", "t-1"), ("X-Team", "blue")]);
    assert!(!search.trusted && search.era == Some(Era::Modern) && search.max_result_bytes == 50_000);
    assert_eq!((search.start_timeout, search.call_timeout), (Duration::from_secs(60), Duration::from_secs(60)));
    assert_eq!(described(search), "https://search.example/mcp/", "a query may hold a secret");

    let config = load(&file, &[("TOKEN", "hunter2")], None).unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn one_that_is_not_enabled_is_left_out_and_needs_nothing() {
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
    assert_eq!(found.iter().map(described).collect::<Vec<_>>(), ["npx"], "and its name is free");
    let wrong = file.replace("env:NOT_SET", "hunter2");
    let said = mistakes(&wrong, &[]);
    assert_eq!(said.len(), 2, "a secret is refused all the same: {said:?}");
}

#[test]
fn every_mistake_names_the_server_and_the_line() {
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
        "3: there is no setting mcp_servers[notes].comand; did you mean command?",
        "4: mcp_servers[notes].args must be a list of texts",
        "5: mcp_servers[notes].trust must be true or false",
        "6: mcp_servers[notes].call_timeout_seconds must be between 1 and 600, not 0",
        "7: mcp_servers[notes].start_timeout_seconds must be a whole number",
        "8: mcp_servers[notes].max_result_bytes must be between 1000 and 10000000, not 10",
        "10: mcp_servers[2] needs a name",
        "10: mcp_servers[2] has command and url: choose one",
        "15: mcp_servers[not a name].name must be 1 to 32 letters, digits, - or _, not 'not a name'",
        "17: mcp_servers[not a name].token goes with url, not with command",
        "18: mcp_servers[not a name].headers goes with url, not with command",
        "19: mcp_servers[not a name].protocol must be one of auto, legacy, modern, not 'new'",
        "20: mcp_servers[not a name].allow has an entry that must be the name of a tool, with * for any letters, not ''",
        "21: mcp_servers[not a name].deny has an entry that must be the name of a tool, with * for any letters, not 'a b'",
        "22: there is no setting mcp_servers[not a name].cwd; did you mean working_directory?",
        "25: mcp_servers[Adjutant].name is our own: choose another",
        "27: mcp_servers[Adjutant].args goes with command, not with url",
        "28: mcp_servers[Adjutant].env goes with command, not with url",
        "29: mcp_servers[Adjutant].working_directory goes with command, not with url",
        "34: mcp_servers[secrets].working_directory must be a directory, and /does/not/exist is none",
        "36: mcp_servers[secrets].env.API_KEY must not stand here itself: write \"env:NAME\" or \"file:PATH\"",
        "37: mcp_servers[secrets].env.GITHUB_TOKEN must not stand here itself: write \"env:NAME\" or \"file:PATH\"",
        "38: mcp_servers[secrets].env.DB_PASSWORD_OLD must not stand here itself: write \"env:NAME\" or \"file:PATH\"",
        "39: mcp_servers[secrets].env.MY_SECRET must not stand here itself: write \"env:NAME\" or \"file:PATH\"",
        "40: mcp_servers[secrets].env.B refers to the variable NOT_SET, which is not set",
        "41: mcp_servers[secrets].env.C refers to the file /does/not/exist, which cannot be read: No such file or \
         directory (os error 2)",
        "44: mcp_servers[secrets].name is taken by the MCP server at adjutant.toml:31",
        "45: mcp_servers[secrets].url holds a user or a password: leave it out of the URL and send a key or a header",
        "46: mcp_servers[secrets].token must not stand here itself: write \"env:NAME\" or \"file:PATH\"",
        "48: mcp_servers[secrets].headers.Authorization must not stand here itself: write \"env:NAME\" or \"file:PATH\"",
        "49: mcp_servers[secrets].headers.a b is not the name of a header",
        "52: mcp_servers[7].name must be text in quotes",
        "53: mcp_servers[7].command must be text in quotes",
        "57: mcp_servers[plain].url would send the key unencrypted: use https:// (http:// only to this machine or a \
         private network)",
        "58: mcp_servers[plain].token and headers.Authorization are the same: choose one",
        "63: mcp_servers[nowhere].url must be a URL such as https://search.example/mcp",
        "64: mcp_servers[nowhere].env must be a table of texts such as { NAME = \"value\" }",
        "64: mcp_servers[nowhere].env goes with command, not with url",
    ];
    let said = mistakes(file, &[("T", "t")]);
    assert_eq!(said, expected.map(|mistake| format!("adjutant.toml:{mistake}")));
    assert!(!said.concat().contains("hunter2"), "a mistake must not repeat the secret");
}

#[test]
fn other_ways_to_write_them_are_refused_with_the_right_one() {
    let wrong = "every MCP server is a [[mcp_servers]] of its own, with a name";
    let cases = [
        ("[mcp_servers]\nname = \"x\"\n", format!("adjutant.toml:1: {wrong}")),
        ("[mcp_servers.notes]\ncommand = \"x\"\n", format!("adjutant.toml:1: {wrong}")),
        ("mcp_servers = [\"uvx notes\"]\n", format!("adjutant.toml:1: {wrong}")),
        ("mcp_servers = true\n", format!("adjutant.toml:1: {wrong}")),
        (
            "[[mcp_server]]\nname = \"x\"\n",
            "adjutant.toml:1: there is no setting mcp_server; did you mean mcp_servers?".to_owned(),
        ),
    ];
    for (file, expected) in cases {
        assert_eq!(mistakes(file, &[]), [expected], "{file}");
    }
    assert_eq!(servers("mcp_servers = [{ name = \"x\", command = \"y\" }]\n", &[]).len(), 1);
    assert_eq!(servers("mcp_servers = []\n", &[]).len(), 0);
    assert_eq!(
        mistakes("", &[("ADJUTANT_MCP_SERVERS__0__NAME", "x")]),
        ["ADJUTANT_MCP_SERVERS__0__NAME: MCP servers stand in the file, as [[mcp_servers]]; variables cannot add or \
          change them"]
    );
}

#[test]
fn what_looks_like_a_secret_is_one_whatever_its_name() {
    let file = "[[mcp_servers]]\nname = \"x\"\ncommand = \"y\"\n\
                env = { DATABASE_URL = \"postgres://me:hunter2@db/x\", HOME_PAGE = \"https://me.example\" }\n";
    let said = mistakes(file, &[]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("env.DATABASE_URL must not stand here itself"), "{said:?}");
}

#[test]
fn secrets_in_arguments_are_not_shown() {
    let file = "[[mcp_servers]]\nname = \"x\"\ncommand = \"y\"\nargs = [\"--password=hunter2\", \"-v\"]\n";
    assert!(!described(&servers(file, &[])[0]).contains("hunter2"));
}

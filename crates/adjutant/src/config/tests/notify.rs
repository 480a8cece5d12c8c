//! Tests of `[[notify]]` and `[smtp]`.

use model::notification::NotificationKind;
use notify::{Channel, ChannelTransport};

use super::load;
use crate::config::notify::describe;

fn channels(file: &str, variables: &[(&str, &str)]) -> Vec<Channel> {
    load(file, variables, None).unwrap().notify.channels
}

fn mistakes(file: &str, variables: &[(&str, &str)]) -> Vec<String> {
    load(file, variables, None).unwrap_err()
}

const SMTP: &str =
    "[smtp]\nurl = \"smtps://me@mail.example\"\nfrom = \"adjutant@mail.example\"\npassword = \"env:P\"\n";

#[test]
fn all_kinds_of_channels_are_read() {
    // TASK-4
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = format!(
        "{SMTP}
[[notify]]
name = \"team\"
type = \"webhook\"
url = \"env:HOOK\"
secret = \"env:S\"
allow_private = false
kinds = [\"reminder\", \"schedule\"]
users = [\"aaaaaaaa-0000-4000-8000-00000000000a\"]
[[notify]]
name = \"desk\"
type = \"command\"
command = \"notify-send\"
args = [\"adjutant\"]
timeout_seconds = 5
[[notify]]
name = \"mail\"
type = \"email\"
to = \"me@mail.example\"
[[notify]]
name = \"off\"
type = \"webhook\"
url = \"env:NOT_SET\"
enabled = false
"
    );
    let variables = [("HOOK", "https://hooks.example/T000/B000"), ("S", "secret"), ("P", "password")];
    let found = channels(&file, &variables);
    let lines: Vec<_> = found.iter().map(describe).collect();
    assert_eq!(
        lines,
        [
            "webhook at hooks.example, reminder and schedule only, for 1 user",
            "command notify-send adjutant",
            "e-mail to me@mail.example"
        ]
    );
    assert_eq!(found[0].kinds, [NotificationKind::Reminder, NotificationKind::Schedule]);
    assert!(matches!(&found[1].transport, ChannelTransport::Command(command) if command.timeout.as_secs() == 5));
    assert!(load("", &[], None).unwrap().notify.notify_due);
    assert!(!load("[tasks]\nnotify_due = false\n", &[], None).unwrap().notify.notify_due);
    assert!(!load("", &[("ADJUTANT_TASKS__NOTIFY_DUE", "false")], None).unwrap().notify.notify_due);
    assert!(load("[tasks]\nnotify_due = \"no\"\n", &[], None).is_err());
}

#[test]
fn every_mistake_is_reported_with_its_line() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = "\
[[notify]]
type = \"pigeon\"
[[notify]]
name = \"hook\"
type = \"webhook\"
url = \"http://127.0.0.1:8080/\"
secrt = \"env:S\"
kinds = [\"birthday\"]
users = [\"me\"]
[[notify]]
name = \"hook\"
type = \"command\"
command = \"say\"
url = \"https://hooks.example\"
[[notify]]
name = \"mail\"
type = \"email\"
to = []
[[notify]]
name = \"inline\"
type = \"webhook\"
url = \"https://hooks.example/\"
secret = \"hunter2hunter2\"
[[notify]]
name = \"unset\"
type = \"webhook\"
url = \"env:NOT_SET\"
";
    let expected = [
        "adjutant.toml:1: notify[1] needs a name",
        "adjutant.toml:2: notify[1].type must be one of webhook, command, email, not 'pigeon'",
        "adjutant.toml:6: notify[hook].url cannot be used: the address is in a private network or on this machine; \
         set allow_private = true to permit it",
        "adjutant.toml:7: unknown setting notify[hook].secrt; did you mean secret?",
        "adjutant.toml:8: notify[hook].kinds has an entry that must be one of reminder, execution, schedule, not 'birthday'",
        "adjutant.toml:9: notify[hook].users has an entry that must be the UUID of a user, not 'me'",
        "adjutant.toml:11: notify[hook].name is already used by the channel at adjutant.toml:3",
        "adjutant.toml:14: notify[hook].url is not a setting of channels of type command",
        "adjutant.toml:17: notify[mail].type needs [smtp] with url and from",
        "adjutant.toml:23: notify[inline].secret must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
        "adjutant.toml:27: notify[unset].url refers to the variable NOT_SET, which is not set",
    ];
    assert_eq!(mistakes(file, &[]), expected);
    assert_eq!(
        mistakes("notify = 1\n", &[]),
        ["adjutant.toml:1: every channel must be a separate [[notify]] with a name and a type"]
    );
    let variable = mistakes("", &[("ADJUTANT_NOTIFY__NAME", "x")]);
    assert!(variable[0].contains("channels must be in the file, as [[notify]]"), "{variable:?}");
    assert!(mistakes("[notfy]\n", &[])[0].ends_with("did you mean notify?"));
}

#[test]
fn mail_servers_are_validated_without_revealing_passwords() {
    let smtp = |lines: &str| mistakes(&format!("[smtp]\n{lines}"), &[("P", "password")]);
    for (lines, expected) in [
        ("from = \"a@b.example\"\n", "[smtp] needs url and from"),
        ("url = \"smtps://me:hunter2@b.example\"\nfrom = \"a@b.example\"\n", "smtp.url contains a password"),
        ("url = \"smtps://b.example\"\nfrom = \"a@b.example\"\npassword = \"env:P\"\n", "smtp.url must contain a user"),
        ("url = \"smtps://me@b.example\"\nfrom = \"a@b.example\"\n", "smtp.url must contain a user"),
        ("url = \"smtp://me@b.example\"\nfrom = \"a@b.example\"\npassword = \"env:P\"\n", "unencrypted"),
        ("url = \"http://b.example\"\nfrom = \"a@b.example\"\n", "smtp.url must be a URL"),
        ("url = \"smtps://b.example\"\nfrom = \"not-an-address\"\n", "smtp.from must be an address"),
    ] {
        let found = smtp(lines);
        assert!(found.len() == 1 && found[0].contains(expected), "{lines}: {found:?}");
        assert!(!found[0].contains("hunter2"), "{found:?}");
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    for url in ["smtp://me@127.0.0.1:25", "smtp://me@b.example:587?tls=required"] {
        let file = SMTP.replace("smtps://me@mail.example", url);
        load(&file, &[("P", "password")], None).unwrap();
    }
}

//! Tests of the precedence of settings, of validation and of reported mistakes.

mod a2a;
mod mcp_servers;
mod models;
mod notify;

use std::ffi::OsString;

use understand::DateOrder;

use super::*;

/// Reads the configuration from `file`, `variables` and `listen` only.
fn load(file: &str, variables: &[(&str, &str)], listen: Option<&str>) -> Result<Config, Vec<String>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("adjutant.toml");
    std::fs::write(&path, file).unwrap();
    let global = GlobalOptions { config: Some(path.clone()), ..GlobalOptions::default() };
    let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let mistakes = match Config::read(&global, listen, variables) {
        (Some(config), mistakes) if mistakes.is_empty() => return Ok(config),
        (_, mistakes) => mistakes,
    };
    let name = path.display().to_string();
    Err(mistakes.iter().map(|mistake| mistake.to_string().replace(&name, "adjutant.toml")).collect())
}

#[test]
fn an_empty_configuration_is_valid() {
    let config = load("", &[], None).unwrap();
    assert_eq!(config.settings.server.listen.to_string(), "127.0.0.1:7717");
    assert!(config.server.auth.is_none() && config.server.rate_limit.is_none() && config.database_url.is_none());
}

#[test]
fn numeric_dates_begin_with_the_month_by_default() {
    let order = |file: &str| load(file, &[], None).map(|config| config.server.numeric_dates);
    assert_eq!(order("").unwrap(), DateOrder::MonthFirst);
    assert_eq!(order("[assistant]\nnumeric_dates = \"day_first\"\n").unwrap(), DateOrder::DayFirst);
    assert!(order("[assistant]\nnumeric_dates = \"year_first\"\n").is_err());
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\nrequest_timeout_seconds = 5\n";
    let port = |variables: &[_], flag| load(file, variables, flag).unwrap().settings.server.listen.port();
    assert_eq!(port(&[], None), 1);
    assert_eq!(port(&[("ADJUTANT_SERVER__LISTEN", "127.0.0.1:2")], None), 2);
    assert_eq!(port(&[("ADJUTANT_SERVER__LISTEN", "127.0.0.1:2")], Some("127.0.0.1:3")), 3);
    let config = load(file, &[("ADJUTANT_SERVER", "http://x"), ("ADJUTANT_TOKEN", "t")], None).unwrap();
    assert_eq!(config.server.request_timeout, Duration::from_secs(5), "variables without __ are not settings");
}

#[test]
fn every_mistake_is_reported_with_its_origin_and_a_suggestion() {
    // OPS-1
    let file = "\
[server]
lisen = \"127.0.0.1:1\"
request_timeout_seconds = \"soon\"
max_body_bytes = 0

[auht]
jwt_secret = \"env:X\"

[auth]
jwt_secret = \"0123456789012345678901234567890123456789\"

[database]
url = \"postgres://user:hunter2@db/adjutant\"
durability = \"maybe\"
[log]
level = \"loud\"
";
    let mistakes = load(file, &[("ADJUTANT_TASKS__MAX_TITEL_CHARS", "5")], None).unwrap_err();
    let expected = [
        "adjutant.toml:2: unknown setting server.lisen; did you mean server.listen?",
        "adjutant.toml:3: server.request_timeout_seconds must be a whole number",
        "adjutant.toml:4: server.max_body_bytes must be between 1024 and 1073741824, not 0",
        "adjutant.toml:7: unknown setting auht.jwt_secret; did you mean auth.jwt_secret?",
        "adjutant.toml:10: auth.jwt_secret must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
        "adjutant.toml:13: database.url contains a password: write url = \"env:NAME\" or \"file:PATH\" instead",
        "adjutant.toml:14: database.durability must be one of full, normal, not 'maybe'",
        "adjutant.toml:16: log.level must be one of info, off, error, warning, debug, trace, not 'loud'",
        "ADJUTANT_TASKS__MAX_TITEL_CHARS: unknown setting tasks.max_titel_chars; did you mean tasks.max_title_chars?",
    ];
    assert_eq!(mistakes, expected);
    assert!(!mistakes.concat().contains("hunter2"), "the message contains the secret");
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    let mistakes = load("[server]\nlisten = \n[log\nlevel = \"info\"\n", &[], None).unwrap_err();
    assert!(mistakes.iter().any(|m| m.starts_with("adjutant.toml:2: not TOML")), "{mistakes:?}");
    assert!(mistakes.iter().any(|m| m.starts_with("adjutant.toml:3: not TOML")), "{mistakes:?}");
}

#[test]
fn a_public_address_needs_authentication() {
    // OPS-3
    for address in ["0.0.0.0:7717", "[::]:7717", "192.168.1.2:7717"] {
        let mistakes = load("", &[], Some(address)).unwrap_err();
        assert!(mistakes[0].starts_with("--listen: ") && mistakes[0].contains("no authentication"), "{mistakes:?}");
    }
    let jwks = [("ADJUTANT_AUTH__JWKS_URL", "https://issuer.example/jwks.json")];
    let config = load("", &jwks, Some("0.0.0.0:7717")).unwrap();
    assert!(!config.server.loopback_only);
    assert!(config.server.rate_limit.is_some(), "authentication enables the rate limit");
}

#[test]
fn secrets_are_read_from_files_and_have_a_minimum_length() {
    // OPS-3
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    let reference = format!("file:{}", secret.display());
    let variables = [("ADJUTANT_AUTH__JWT_SECRET", reference.as_str())];
    assert!(load("", &variables, None).unwrap_err()[0].contains("cannot be read"));
    std::fs::write(&secret, "short\n").unwrap();
    assert!(load("", &variables, None).unwrap_err()[0].contains("at least 32 characters"));
    std::fs::write(&secret, format!("{}\n", "s".repeat(32))).unwrap();
    let auth = load("", &variables, None).unwrap().server.auth.unwrap();
    assert_eq!(auth.secret.unwrap().expose_secret(), "s".repeat(32));
}

#[test]
fn the_previous_secret_and_the_sealing_key_have_the_same_rules() {
    // OPS-3
    let long = "s".repeat(32);
    let variables = [("LONG", long.as_str()), ("SHORT", "short")];
    let file = "[auth]\njwt_secret = \"env:LONG\"\nprevious_jwt_secret = \"env:LONG\"\n[database]\nsealing_key = \"env:LONG\"\n";
    let server = load(file, &variables, None).unwrap().server;
    assert!(server.auth.unwrap().previous_secret.is_some() && server.sealing_key.is_some());
    let file = "[auth]\nprevious_jwt_secret = \"env:SHORT\"\n[database]\nsealing_key = \"env:SHORT\"\n";
    let mistakes = load(file, &variables, None).unwrap_err();
    assert!(mistakes.iter().any(|mistake| mistake.contains("needs auth.jwt_secret")), "{mistakes:?}");
    let short = mistakes.iter().filter(|mistake| mistake.contains("at least 32 characters")).count();
    assert_eq!(short, 2, "{mistakes:?}");
}

#[test]
fn references_are_resolved_from_the_environment() {
    let variables = [("ADJUTANT_AUTH__JWT_SECRET", "env:JWT"), ("JWT", "0123456789012345678901234567890123456789")];
    assert!(load("", &variables, None).unwrap().server.auth.unwrap().secret.is_some());
    let mistakes = load("", &variables[..1], None).unwrap_err();
    assert_eq!(mistakes, ["ADJUTANT_AUTH__JWT_SECRET: auth.jwt_secret refers to the variable JWT, which is not set"]);
}

#[test]
fn every_default_has_the_type_of_its_setting() {
    let (config, mistakes) = Config::read(&GlobalOptions::default(), None, std::iter::empty());
    assert!(config.is_some() && mistakes.is_empty(), "{mistakes:?}");
    for (section, keys) in settings::SECTIONS {
        for key in *keys {
            let text = format!("{section}.{}", key.name);
            assert!(key.default.is_empty() || !key.default().is_null(), "{text} = {}", key.default);
            assert!(!key.description.trim().is_empty() && key.template().lines().count() == 2, "{text}");
        }
    }
}

#[test]
fn the_template_is_valid_with_all_lines_uncommented() {
    let template = crate::commands::config::template();
    load(&template, &[], None).unwrap();
    let lines = template.lines().map(|line| match line.strip_prefix("# ") {
        Some(setting) if setting.contains(" = ") || setting.starts_with("[[") => setting,
        _ => line,
    });
    let all: Vec<_> = lines.filter(|line| !line.contains("env:") || line.contains("SMTP_PASSWORD")).collect();
    let keys = [("GEMINI_API_KEY", "g"), ("OPENAI_API_KEY", "o"), ("SMTP_PASSWORD", "p")];
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = load(&all.join("\n"), &keys, None).unwrap();
    assert_eq!((config.models.configs.len(), config.mcp_servers.len(), config.agents.len()), (3, 2, 2));
    assert_eq!(config.schedules.len(), 1);
    assert_eq!(config.notify.channels.len(), 3);
}

#[test]
fn schedules_are_read_from_the_file() {
    // SCHED-1, SCHED-2
    let file = "\
[assistant]
time_zone = \"Europe/Berlin\"
[[schedules]]
name = \"tidy\"
agent_id = \"codex\"
cron_expression = \"0 17 * * FRI\"
input_parameters = { input = \"Tidy the changelog.\" }
[[schedules]]
name = \"once\"
agent_id = \"codex\"
at = 2026-12-24T18:00:00
enabled = false
";
    let config = load(file, &[], None).unwrap();
    let unknown: Vec<_> = config.unknown_among(&["codx".to_owned()]).iter().map(|m| m.message.clone()).collect();
    assert_eq!(unknown.len(), 2);
    let message = "schedules[tidy].agent_id must be the id of an agent; there is no agent 'codex'; did you mean codx?";
    assert_eq!(unknown[0], message);
    assert!(config.unknown_among(&["codex".to_owned()]).is_empty(), "the agent was added over the API");
    let [tidy, once] = &config.schedules[..] else { panic!("{:?}", config.schedules) };
    assert_eq!((tidy.settings.time_zone.as_str(), tidy.enabled), ("Europe/Berlin", None));
    assert_eq!(once.settings.at.unwrap().to_string(), "2026-12-24T17:00:00Z", "a TOML time without quotes");
    assert_eq!(once.enabled, Some(false));

    let file = "\
[[schedules]]
name = \"a\"
agent_id = \"x\"
cron_expression = \"61 * * * *\"
jitter = \"long\"
[[schedules]]
name = \"b\"
agent_id = \"x\"
every = \"1h\"
[[schedules]]
name = \"B\"
agent_id = \"x\"
every = \"1h\"
evry = \"1h\"
";
    let mistakes = load(file, &[("ADJUTANT_SCHEDULES__A", "1")], None).unwrap_err();
    let starts = [
        "adjutant.toml:4: schedules[a].cron_expression has '61' for the minute",
        "adjutant.toml:5: schedules[a].jitter must be a duration",
        "adjutant.toml:11: schedules[B].name is already used by the schedule at adjutant.toml:6",
        "adjutant.toml:14: schedules[B].evry is not a known field",
        "ADJUTANT_SCHEDULES__A: schedules must be in the file",
    ];
    assert_eq!(mistakes.len(), starts.len(), "{mistakes:#?}");
    for (mistake, start) in mistakes.iter().zip(starts) {
        assert!(mistake.starts_with(start), "{mistake}");
    }
    let twice = file.replace("evry = \"1h\"\n", "").replace("61", "1").replace("jitter = \"long\"\n", "");
    assert_eq!(
        load(&twice, &[], None).unwrap_err(),
        ["adjutant.toml:10: schedules[B].name is already used by the schedule at adjutant.toml:5"]
    );
}

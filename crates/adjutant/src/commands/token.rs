//! `adjutant token`: creates tokens with the configured secret and revokes tokens.

use std::io::Read;
use std::time::Duration;

use anyhow::Context;
use api::tokens::Revocation;
use model::Clock;
use serde_json::json;
use server::auth::mint::{TokenRequest, mint};
use server::auth::user_name::NamedUser;

use crate::cli::{GlobalOptions, TokenCommand};
use crate::client::Client;
use crate::exit::{ExitError, ExitStatus};
use crate::output;

/// Creates a token, or revokes one by its text (`-` reads standard input) or by its id and user. A revocation prints a
/// note only, also with `--json`. Fails if an option is invalid, if standard input cannot be read, or if the server
/// refuses.
pub(crate) async fn run(global: &GlobalOptions, command: TokenCommand) -> anyhow::Result<()> {
    match command {
        TokenCommand::Create { user, ttl, scope, time_zone } => create(global, &user, &ttl, scope, time_zone),
        TokenCommand::Revoke { revoke: mut token, id, user: user_id } => {
            if token.as_deref() == Some("-") {
                let mut read = String::new();
                std::io::stdin().read_to_string(&mut read).context("failed to read the token")?;
                token = Some(read.trim().to_owned());
            }
            let user_id = user_id.as_deref().map(parse_user).transpose()?.map(|user| user.id.to_string());
            let body = match token {
                Some(_) => Revocation { token, ..Revocation::default() },
                None => Revocation { token, id, user_id },
            };
            Client::connect(global).await?.post("/api/tokens/revoke", &body).await?;
            output::note("the token is revoked");
            Ok(())
        }
    }
}

/// Prints a token that is signed with the configured secret; with `--json` also its id, user and expiry. The id of
/// a user that was given by name is a note. Needs no server.
///
/// Fails with a usage error if the configuration is invalid or has no secret, or if `user` is neither a name nor a UUID. Also fails if
/// `ttl` is not a valid duration, if the time zone is unknown, or if a scope is empty or contains whitespace.
fn create(
    global: &GlobalOptions,
    user: &str,
    ttl: &str,
    scopes: Vec<String>,
    time_zone: Option<String>,
) -> anyhow::Result<()> {
    let config = super::load_config(global, None)?;
    let usage_error = |message: String| ExitError::new(ExitStatus::Usage, message);
    let NamedUser { id: user, name: user_name } = parse_user(user)?;
    let ttl = parse_ttl(ttl)
        .ok_or_else(|| usage_error(format!("--ttl must be a duration such as 30m, 24h or 90d, not '{ttl}'")))?;
    if let Some(zone) = &time_zone {
        jiff::tz::TimeZone::get(zone).map_err(|_| usage_error(format!("--time-zone: unknown time zone '{zone}'")))?;
    }
    if let Some(scope) = scopes.iter().find(|scope| scope.is_empty() || scope.contains(char::is_whitespace)) {
        return Err(usage_error(format!("--scope must be one word, not '{scope}'")).into());
    }
    let request = TokenRequest { user, user_name, ttl, scopes, time_zone };
    let minted = config.server.auth.as_ref().and_then(|auth| mint(auth, &request, &Clock::system()));
    let minted =
        minted.ok_or_else(|| usage_error("no secret to sign tokens with: configure auth.jwt_secret".to_owned()))?;
    if global.json {
        let mut body =
            json!({"token": minted.token, "id": minted.id, "user_id": request.user, "expires_at": minted.expires_at});
        if let (Some(name), Some(fields)) = (&request.user_name, body.as_object_mut()) {
            fields.insert("user_name".to_owned(), name.as_str().into());
        }
        return output::print_line(&body.to_string());
    }
    if let Some(name) = &request.user_name {
        output::note(&format!("the user id of {name} is {}", request.user));
    }
    output::print_line(&minted.token)
}

/// Returns the user of `--user`. Fails with a usage error if it is neither a name nor a UUID.
pub(super) fn parse_user(text: &str) -> Result<NamedUser, ExitError> {
    NamedUser::parse(text).ok_or_else(|| {
        let message =
            format!("--user must be a UUID, or a name of up to 64 letters, digits, '.', '-', '_' or '@', not '{text}'");
        ExitError::new(ExitStatus::Usage, message)
    })
}

/// Parses a whole number and one of `s`, `m`, `h`, `d`. Returns none for other texts, and if the duration is not
/// between a second and ten years (3660 days).
fn parse_ttl(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return None,
    };
    let total = number.parse::<u64>().ok()?.checked_mul(seconds)?;
    (1..=10 * 366 * 24 * 3600).contains(&total).then(|| Duration::from_secs(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_need_a_unit_and_have_a_maximum() {
        assert_eq!(parse_ttl("24h"), Some(Duration::from_secs(86_400)));
        assert_eq!(parse_ttl("90d"), Some(Duration::from_secs(90 * 86_400)));
        for wrong in ["", "h", "24", "0h", "-1h", "1.5h", "é", "99999999999d", "18446744073709551615d"] {
            assert_eq!(parse_ttl(wrong), None, "{wrong}");
        }
    }
}

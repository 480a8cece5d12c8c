//! `adjutant token`: make tokens with the configured secret, and take them back.

use std::io::Read;
use std::time::Duration;

use anyhow::Context;
use api::tokens::Revocation;
use model::Clock;
use serde_json::json;
use server::auth::mint::{Wanted, mint};

use crate::cli::{Global, Token};
use crate::client::Client;
use crate::exit::{Code, Exit};
use crate::output;

pub(crate) async fn run(global: &Global, command: Token) -> anyhow::Result<()> {
    match command {
        Token::Create { user, ttl, scope, time_zone } => create(global, &user, &ttl, scope, time_zone),
        Token::Revoke { revoke: mut token, id, user: user_id } => {
            if token.as_deref() == Some("-") {
                let mut read = String::new();
                std::io::stdin().read_to_string(&mut read).context("failed to read the token")?;
                token = Some(read.trim().to_owned());
            }
            let body = match token {
                Some(_) => Revocation { token, ..Revocation::default() },
                None => Revocation { token, id, user_id },
            };
            Client::connect(global).await?.post("/api/tokens/revoke", &body).await?;
            output::note("the token is no longer valid");
            Ok(())
        }
    }
}

fn create(
    global: &Global,
    user: &str,
    ttl: &str,
    scopes: Vec<String>,
    time_zone: Option<String>,
) -> anyhow::Result<()> {
    let config = super::load(global, None)?;
    let wrong = |message: String| Exit::new(Code::Usage, message);
    let user = user.parse().map_err(|_| wrong(format!("--user must be a UUID, not '{user}'")))?;
    let ttl =
        duration(ttl).ok_or_else(|| wrong(format!("--ttl must be a time such as 30m, 24h or 90d, not '{ttl}'")))?;
    if let Some(zone) = &time_zone {
        jiff::tz::TimeZone::get(zone).map_err(|_| wrong(format!("--time-zone: there is no time zone '{zone}'")))?;
    }
    if let Some(scope) = scopes.iter().find(|scope| scope.is_empty() || scope.contains(char::is_whitespace)) {
        return Err(wrong(format!("--scope must be one word, not '{scope}'")).into());
    }
    let wanted = Wanted { user, ttl, scopes, time_zone };
    let minted = config.server.auth.as_ref().and_then(|auth| mint(auth, &wanted, &Clock::system()));
    let minted =
        minted.ok_or_else(|| wrong("there is no secret to sign with: configure auth.jwt_secret".to_owned()))?;
    if global.json {
        let body =
            json!({"token": minted.token, "id": minted.id, "user_id": wanted.user, "expires_at": minted.expires_at});
        return output::say(&body.to_string());
    }
    output::say(&minted.token)
}

/// A number and one of `s`, `m`, `h`, `d`; at least a second and at most ten years.
fn duration(text: &str) -> Option<Duration> {
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
    fn lifetimes_have_a_unit_and_an_end() {
        assert_eq!(duration("24h"), Some(Duration::from_secs(86_400)));
        assert_eq!(duration("90d"), Some(Duration::from_secs(90 * 86_400)));
        for wrong in ["", "h", "24", "0h", "-1h", "1.5h", "é", "99999999999d", "18446744073709551615d"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}

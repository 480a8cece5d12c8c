//! `adjutant mcp`: the tools on standard input and output, for MCP clients that start their servers themselves.
//!
//! Where a server runs, everything goes through it; where none runs, the data directory is opened as by any other
//! command. Standard output belongs to the protocol.

mod bridge;

use model::{Clock, User, UserId};
use server::auth::identify;
use server::auth::mint::{Wanted, mint};
use server::settings::Auth;
use store::lock::Lock;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tools::mcp::{Asker, stdio};

use crate::cli::Global;
use crate::client::{Place, find};
use crate::exit::{Code, Exit};
use crate::{logging, wire};

/// How long a token lives that is made for one request.
const TOKEN_TTL: std::time::Duration = std::time::Duration::from_secs(5 * 60);

/// Whom the server is told that its client is.
pub(super) enum Identity {
    /// The local user, where the server wants no token.
    Nobody,
    Token(String),
    /// A token is made for every request, so that none expires however long the client runs.
    Minted {
        auth: Auth,
        user: UserId,
    },
}

impl Identity {
    pub(super) fn token(&self) -> Option<String> {
        match self {
            Self::Nobody => None,
            Self::Token(token) => Some(token.clone()),
            Self::Minted { auth, user } => {
                let wanted = Wanted { user: *user, ttl: TOKEN_TTL, scopes: Vec::new(), time_zone: None };
                mint(auth, &wanted, &Clock::system()).map(|minted| minted.token)
            }
        }
    }
}

pub(crate) fn run(global: &Global, user: Option<&str>) -> anyhow::Result<()> {
    let runtime = wire::small_runtime()?;
    let done = runtime.block_on(serve(global, user));
    // A thread that still reads standard input cannot be waited for.
    runtime.shutdown_background();
    done
}

async fn serve(global: &Global, user: Option<&str>) -> anyhow::Result<()> {
    let wrong = |message: String| Exit::new(Code::Usage, message);
    let user = user.map(|user| user.parse().map_err(|_| wrong(format!("--user must be a UUID, not '{user}'"))));
    let user: Option<UserId> = user.transpose()?;
    if user.is_some() && global.token.is_some() {
        return Err(wrong("--user and a token both say who you are; give one of them".to_owned()).into());
    }
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let asked = stop.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        asked.cancel();
    });
    match find(global).await? {
        Place::Server { client, base } => bridge::run(client, base, identity(global, user)?, stop).await,
        Place::Here(lock) => here(global, user, lock, stop).await,
    }
}

fn identity(global: &Global, user: Option<UserId>) -> anyhow::Result<Identity> {
    Ok(match (&global.token, user) {
        (Some(token), _) => Identity::Token(token.clone()),
        (None, None) => Identity::Nobody,
        (None, Some(user)) => {
            let auth = super::load(global, None)?.server.auth.filter(|auth| auth.secret.is_some());
            match auth {
                Some(auth) => Identity::Minted { auth, user },
                None if user == UserId::LOCAL => Identity::Nobody,
                None => {
                    let message = "the server must be shown a token for this user, and there is no secret to make one \
                                   with: configure auth.jwt_secret, or give --token instead of --user";
                    return Err(Exit::new(Code::Usage, message).into());
                }
            }
        }
    })
}

/// Without a server. The lock is held until the client leaves.
async fn here(global: &Global, user: Option<UserId>, _lock: Lock, stop: CancellationToken) -> anyhow::Result<()> {
    let config = super::load(global, None)?;
    logging::start(&config, None);
    logging::log_panics();
    let mut settings = config.server.clone();
    if global.token.is_none() {
        settings.auth = None;
    }
    let app = wire::app(&config, settings, wire::alone()).await?;
    let zone = config.server.time_zone.clone();
    let user = match user {
        Some(id) if id != UserId::LOCAL => User { id, scopes: Vec::new(), time_zone: zone },
        _ => {
            let user = identify(&app, global.token.as_deref()).await;
            user.ok_or_else(|| Exit::new(Code::NotAuthorised, "a valid token is required"))?
        }
    };
    let span = tracing::error_span!("mcp", user_id = %user.id);
    let asker = Asker { user, tools: app.tools(), span };
    stdio::serve(asker, app.store().clone(), stop).await;
    Ok(())
}

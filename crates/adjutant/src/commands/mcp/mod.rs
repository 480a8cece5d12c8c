//! `adjutant mcp`: serves the tools on standard input and output, for MCP clients that start their servers.
//!
//! Messages are forwarded to a running server. Without a server, the first such process opens the data directory and
//! serves the others over the socket there. If it ends, one of the others takes its place. Standard output carries only
//! the protocol.

mod bridge;

use model::{Clock, User, UserId};
use server::auth::identify;
use server::auth::mint::{TokenRequest, mint};
use server::settings::AuthSettings;
use store::lock::DataDirLock;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tools::mcp::{McpCaller, stdio};

use crate::cli::GlobalOptions;
use crate::client::local_settings;
use crate::exit::{ExitError, ExitStatus};
use crate::holder::Holder;
use crate::target::{ConnectionTarget, find_target};
use crate::{logging, wire};

/// The lifetime of a token for one request.
const TOKEN_TTL: std::time::Duration = std::time::Duration::from_secs(5 * 60);

/// The identity of the MCP client towards the server.
pub(super) enum BridgeIdentity {
    /// The local user, if the server requires no token.
    LocalUser,
    Token(String),
    /// Every request gets a new token, so that long sessions do not expire.
    Minted {
        auth: AuthSettings,
        user: UserId,
    },
}

impl BridgeIdentity {
    /// Returns the token for the next request. None for the local user, or if no token can be signed. A minted token is
    /// new, has no scopes and is valid for [`TOKEN_TTL`].
    pub(super) fn token(&self) -> Option<String> {
        match self {
            Self::LocalUser => None,
            Self::Token(token) => Some(token.clone()),
            Self::Minted { auth, user } => {
                let request =
                    TokenRequest { user: *user, user_name: None, ttl: TOKEN_TTL, scopes: Vec::new(), time_zone: None };
                mint(auth, &request, &Clock::system()).map(|minted| minted.token)
            }
        }
    }
}

/// Serves the MCP client on standard input and output until it disconnects or SIGTERM arrives. Then waits for the
/// executions of other commands in this process; a second SIGTERM ends the wait. Ctrl-C ends the process.
/// `user` is the value of `--user`. Fails if the options are invalid or neither a server nor the data directory can be
/// used.
pub(crate) fn run(global: &GlobalOptions, user: Option<&str>) -> anyhow::Result<()> {
    let runtime = wire::command_runtime()?;
    let done = runtime.block_on(serve(global, user));
    // The thread that reads standard input cannot be joined.
    runtime.shutdown_background();
    done
}

/// Forwards messages to the running server, or serves them from the data directory if there is no server, until the
/// client closes its input or SIGTERM arrives. Fails with a usage error if `user` is neither a name nor a UUID, or if both `user` and
/// a token are given. Also fails if no target can be used or no token can be signed for `user`.
async fn serve(global: &GlobalOptions, user: Option<&str>) -> anyhow::Result<()> {
    let usage_error = |message: String| ExitError::new(ExitStatus::Usage, message);
    let user = user.map(super::token::parse_user).transpose()?.map(|user| user.id);
    if user.is_some() && global.token.is_some() {
        return Err(usage_error("--user and a token both select a user; give only one of them".to_owned()).into());
    }
    let stop = CancellationToken::new();
    let abort = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let on_signal = (stop.clone(), abort.clone());
    tokio::spawn(async move {
        terminate.recv().await;
        on_signal.0.cancel();
        terminate.recv().await;
        on_signal.1.cancel();
    });
    let holder = match find_target(global).await? {
        ConnectionTarget::Server(target) => bridge::run(target, global, identity(global, user)?, stop).await?,
        ConnectionTarget::DataDir(lock) => Some(serve_data_dir(global, user, lock, stop).await?),
    };
    if let Some(holder) = holder {
        abort.run_until_cancelled(finish(&holder)).await;
    }
    Ok(())
}

/// Waits for the executions that this process runs for other commands, and ends the service for them.
async fn finish(holder: &Holder) {
    if holder.is_running_agents().await {
        let supervisor = holder.app().supervisor();
        supervisor.drain().await;
        supervisor.stop().await;
    }
    holder.close().await;
}

/// Opens the data directory and serves other commands over its socket. Starts logging and replaces the panic hook.
/// Models are not called and agents do not run, unless another command asks for it. Fails if the configuration is
/// invalid or the database cannot be opened.
async fn hold_data_dir(global: &GlobalOptions, lock: DataDirLock) -> anyhow::Result<Holder> {
    let config = super::load_config(global, None)?;
    logging::start(&config, None);
    logging::log_panics();
    let settings = local_settings(&config);
    let holder = Holder::open(config, settings, wire::offline_backends(), false, lock).await?;
    holder.listen().await;
    Ok(holder)
}

/// Returns the identity towards the server: the token if one is given, else the user, else the local user. With a
/// configured secret, requests of `user` get minted tokens, also for the local user.
///
/// Fails with a usage error if `user` is not the local user and no secret is configured to sign tokens. Reads the
/// configuration only for `user`, and fails if it is invalid.
fn identity(global: &GlobalOptions, user: Option<UserId>) -> anyhow::Result<BridgeIdentity> {
    Ok(match (&global.token, user) {
        (Some(token), _) => BridgeIdentity::Token(token.clone()),
        (None, None) => BridgeIdentity::LocalUser,
        (None, Some(user)) => {
            let auth = super::load_config(global, None)?.server.auth.filter(|auth| auth.secret.is_some());
            match auth {
                Some(auth) => BridgeIdentity::Minted { auth, user },
                None if user == UserId::LOCAL => BridgeIdentity::LocalUser,
                None => {
                    let message = "the server needs a token for this user, and no secret is configured to sign one: \
                                   configure auth.jwt_secret, or use --token instead of --user";
                    return Err(ExitError::new(ExitStatus::Usage, message).into());
                }
            }
        }
    })
}

/// Serves the client from the data directory until it disconnects or `stop` is cancelled. Returns the data directory,
/// which other commands may still use.
///
/// Tokens are checked only if one is given. `user` is trusted; it has no scopes unless it is the local user. Fails if
/// the configuration or the token is invalid, or if the database cannot be opened.
async fn serve_data_dir(
    global: &GlobalOptions,
    user: Option<UserId>,
    lock: DataDirLock,
    stop: CancellationToken,
) -> anyhow::Result<Holder> {
    let holder = hold_data_dir(global, lock).await?;
    let app = holder.app();
    let user = match user {
        Some(id) if id != UserId::LOCAL => User { id, scopes: Vec::new(), time_zone: holder.time_zone() },
        _ => {
            let user = identify(app, global.token.as_deref()).await;
            user.ok_or_else(|| ExitError::new(ExitStatus::NotAuthorised, "a valid token is required"))?
        }
    };
    let span = tracing::error_span!("mcp", user_id = %user.id);
    let caller = McpCaller { user, tools: app.tools(), span };
    stdio::serve(caller, app.store().clone(), stop).await;
    Ok(holder)
}

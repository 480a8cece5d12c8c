//! The tokens with which runs of agents with `api_access` use the server that runs them (SEC-1).
//!
//! A token belongs to one process of an agent and is valid while that process runs. It is kept in memory only. The server
//! accepts it only over a connection of the same run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use model::UserId;
use model::text::hex;
use ring::rand::{SecureRandom, SystemRandom};
use uuid::Uuid;

use crate::command::CommandPlan;

/// The variable with the URL of the server. The command line of adjutant reads it too.
const SERVER_VARIABLE: &str = "ADJUTANT_SERVER";
/// The variable with the token. The command line of adjutant reads it too.
const TOKEN_VARIABLE: &str = "ADJUTANT_TOKEN";

/// The number of random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// The tokens of all runs. Cloning is cheap.
#[derive(Clone, Default)]
pub(crate) struct ApiGrants(Arc<ApiGrantsShared>);

#[derive(Default)]
struct ApiGrantsShared {
    /// `None` if this process serves no requests.
    server: RwLock<Option<ServerAddress>>,
    /// By the id of the execution, or of the session.
    grants: Mutex<HashMap<Uuid, Grant>>,
}

/// The address of the server for agents on this machine.
#[derive(Clone, Debug)]
pub struct ServerAddress {
    pub url: String,
    pub port: u16,
}

struct Grant {
    token: String,
    owner: UserId,
}

/// The right of one run to use the server. It ends when this is dropped.
pub(crate) struct ApiGrant {
    grants: ApiGrants,
    id: Uuid,
    token: String,
}

impl ApiGrants {
    /// Sets the address of the server. Without one, no token is granted.
    pub(crate) fn set_server(&self, address: ServerAddress) {
        *self.0.server.write().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    /// Returns the port of the server, if there is one.
    pub(crate) fn port(&self) -> Option<u16> {
        self.0.server.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|server| server.port)
    }

    /// Creates a token for a run and adds it to the variables and the secrets of its plan. Returns `None` without a
    /// server, or without random numbers of the system.
    pub(crate) fn grant(&self, id: Uuid, owner: UserId, plan: &mut CommandPlan) -> Option<ApiGrant> {
        let url = self.0.server.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.url.clone();
        let mut random = [0; TOKEN_BYTES];
        SystemRandom::new().fill(&mut random).ok()?;
        let token = format!("run_{}", hex(&random));
        plan.env.insert(SERVER_VARIABLE.to_owned(), url);
        plan.env.insert(TOKEN_VARIABLE.to_owned(), token.clone());
        plan.secrets.push(token.clone());
        crate::lock(&self.0.grants).insert(id, Grant { token: token.clone(), owner });
        Some(ApiGrant { grants: self.clone(), id, token })
    }

    /// Returns the owner of a run if this is the current token of the run.
    pub(crate) fn owner(&self, id: Uuid, token: &str) -> Option<UserId> {
        let grants = crate::lock(&self.0.grants);
        grants.get(&id).filter(|grant| grant.token == token).map(|grant| grant.owner)
    }
}

impl Drop for ApiGrant {
    fn drop(&mut self) {
        let mut grants = crate::lock(&self.grants.0.grants);
        // The next process of a session may have a grant already.
        if grants.get(&self.id).is_some_and(|grant| grant.token == self.token) {
            grants.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::command::InputDelivery;

    fn plan() -> CommandPlan {
        CommandPlan {
            program: "/bin/true".into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: "/".into(),
            input: InputDelivery::Argument,
            input_file: None,
            files: Vec::new(),
            output_file: None,
            output_dir: "/".into(),
            scratch: "/".into(),
            secrets: Vec::new(),
            unused: Vec::new(),
        }
    }

    #[test]
    fn a_token_is_valid_for_its_run_until_the_run_ends() {
        // SEC-1
        let grants = ApiGrants::default();
        let id = Uuid::from_u128(1);
        assert!(grants.grant(id, UserId::LOCAL, &mut plan()).is_none(), "there is no server");
        grants.set_server(ServerAddress { url: "http://127.0.0.1:7717".to_owned(), port: 7717 });
        let mut planned = plan();
        let grant = grants.grant(id, UserId::LOCAL, &mut planned).unwrap();
        let token = planned.env["ADJUTANT_TOKEN"].clone();
        assert_eq!(planned.env["ADJUTANT_SERVER"], "http://127.0.0.1:7717");
        assert_eq!(planned.secrets, std::slice::from_ref(&token));
        assert_eq!(grants.owner(id, &token), Some(UserId::LOCAL));
        assert_eq!(grants.owner(id, "run_"), None);
        assert_eq!(grants.owner(Uuid::from_u128(2), &token), None, "another run");
        let mut next = plan();
        let next_grant = grants.grant(id, UserId::LOCAL, &mut next).unwrap();
        drop(grant);
        assert_eq!(grants.owner(id, &token), None, "replaced");
        assert_eq!(grants.owner(id, &next.env["ADJUTANT_TOKEN"]), Some(UserId::LOCAL));
        drop(next_grant);
        assert_eq!(grants.owner(id, &next.env["ADJUTANT_TOKEN"]), None, "ended");
    }
}

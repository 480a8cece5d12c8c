//! The messages of gRPC, written by hand: `lf.a2a.v1` of version 1.x ([`v1`]), `a2a.v1` of 0.3 ([`v03`]), and what both
//! say alike ([`shared`]). Names and numbers are those of the two public definitions. Beside them are the pure
//! conversions: `From<types::X>` can always be done, `TryFrom` fails with an error that names the field.
//!
//! Protobuf does not tell an empty text from none, nor an empty list, nor a no: all become none here. Whether a field that may
//! not be missing is there is asked later, where a request is taken for one (see `grpc`): what other agents leave out
//! in their answers must not make them unreadable.

mod cards;
mod cards03;
mod names;
mod requests;
mod requests03;
pub mod rpc;
pub mod shared;
mod tasks;
mod tasks03;
pub mod v03;
pub mod v1;
pub mod values;

use crate::Error;
use crate::types::{Role, TaskState};

/// Nothing, where protobuf says nothing with an empty text.
fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// Nothing, where protobuf says nothing with an empty list.
fn some_of<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

/// Nothing, where protobuf says nothing with a no.
fn yes(flag: bool) -> Option<bool> {
    flag.then_some(true)
}

/// Every one of a list, or the first that is wrong.
fn all<T, U: TryFrom<T, Error = Error>>(list: Vec<T>, field: &str) -> Result<Vec<U>, Error> {
    let convert =
        |(at, item): (usize, T)| U::try_from(item).map_err(|error: Error| error.inside(&format!("{field}[{at}]")));
    list.into_iter().enumerate().map(convert).collect()
}

fn list<T, U: From<T>>(list: Vec<T>) -> Vec<U> {
    list.into_iter().map(U::from).collect()
}

/// What is at most there once.
fn one<T, U: TryFrom<T, Error = Error>>(item: Option<T>, field: &str) -> Result<Option<U>, Error> {
    item.map(|item| U::try_from(item).map_err(|error: Error| error.inside(field))).transpose()
}

/// What must be there once.
fn must<T, U: TryFrom<T, Error = Error>>(item: Option<T>, field: &str) -> Result<U, Error> {
    one(item, field)?.ok_or_else(|| Error::invalid(field, "missing"))
}

impl From<TaskState> for shared::TaskState {
    fn from(state: TaskState) -> Self {
        match state {
            TaskState::Unspecified => Self::Unspecified,
            TaskState::Submitted => Self::Submitted,
            TaskState::Working => Self::Working,
            TaskState::Completed => Self::Completed,
            TaskState::Failed => Self::Failed,
            TaskState::Canceled => Self::Canceled,
            TaskState::InputRequired => Self::InputRequired,
            TaskState::Rejected => Self::Rejected,
            TaskState::AuthRequired => Self::AuthRequired,
        }
    }
}

fn state(number: i32, field: &str) -> Result<TaskState, Error> {
    let state = shared::TaskState::try_from(number);
    Ok(match state.map_err(|_| Error::invalid(field, format!("{number} is no state of a task")))? {
        shared::TaskState::Unspecified => TaskState::Unspecified,
        shared::TaskState::Submitted => TaskState::Submitted,
        shared::TaskState::Working => TaskState::Working,
        shared::TaskState::Completed => TaskState::Completed,
        shared::TaskState::Failed => TaskState::Failed,
        shared::TaskState::Canceled => TaskState::Canceled,
        shared::TaskState::InputRequired => TaskState::InputRequired,
        shared::TaskState::Rejected => TaskState::Rejected,
        shared::TaskState::AuthRequired => TaskState::AuthRequired,
    })
}

impl From<Role> for shared::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Unspecified => Self::Unspecified,
            Role::User => Self::User,
            Role::Agent => Self::Agent,
        }
    }
}

fn role(number: i32) -> Result<Role, Error> {
    let role = shared::Role::try_from(number);
    Ok(match role.map_err(|_| Error::invalid("role", format!("{number} is no role")))? {
        shared::Role::Unspecified => Role::Unspecified,
        shared::Role::User => Role::User,
        shared::Role::Agent => Role::Agent,
    })
}

#[cfg(test)]
mod tests;

//! `/api/permissions`.

pub use model::permission::Permission;

page! {
    /// Permissions.
    Permissions { permissions: Permission }
}

list! {
    /// Selects permissions.
    ListPermissions -> Permissions {}
}

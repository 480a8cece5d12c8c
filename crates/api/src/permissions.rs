//! `/api/permissions`.

pub use model::permission::Permission;

page! {
    /// A page of permissions.
    PermissionPage { permissions: Permission }
}

list! {
    /// Selects permissions.
    ListPermissions -> PermissionPage {}
}

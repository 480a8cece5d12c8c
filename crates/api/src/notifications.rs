//! `/api/notifications`.

pub use model::notification::{Kind, Notification};

page! {
    /// Notifications.
    Notifications { notifications: Notification }
}

list! {
    /// Selects notifications.
    ListNotifications -> Notifications {
        /// `true`: only those that were not read yet.
        unread: bool,
    }
}

//! `/api/notifications`.

pub use model::notification::{Notification, NotificationKind};

page! {
    /// Notifications.
    Notifications { notifications: Notification }
}

list! {
    /// Selects notifications.
    ListNotifications -> Notifications {
        /// `true`: only unread notifications.
        unread: bool,
    }
}

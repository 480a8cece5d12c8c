//! `/api/audit`.

pub use model::audit::{Actor, AuditAction, AuditInterface, AuditRecord};

page! {
    /// Records of the audit log.
    AuditRecords { records: AuditRecord }
}

list! {
    /// Selects records of the audit log.
    ListAudit -> AuditRecords {
        /// Only records since then: a time, a date, words such as `yesterday`, or a duration before now such as `2h` or `7d`.
        since: String,
        /// Only records of this action.
        #[param(value_type = Option<String>)]
        action: AuditAction,
    }
}

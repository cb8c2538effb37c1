//! Times in file names.

use std::time::SystemTime;

/// `2026-08-01T10-20-30-123Z`: ISO 8601 in milliseconds, with what file systems dislike replaced, as the
/// other agents write it (spec "Session model", 10).
pub(crate) fn for_file_name(time: SystemTime) -> String {
    let text = jiff::Timestamp::try_from(time).map_or_else(
        |_| "1970-01-01T00:00:00.000Z".to_owned(),
        |time| format!("{time:.3}"),
    );
    text.replace([':', '.'], "-")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn milliseconds_without_colons() {
        let time = UNIX_EPOCH + Duration::from_millis(1_785_579_630_123);
        assert_eq!(for_file_name(time), "2026-08-01T10-20-30-123Z");
        assert_eq!(for_file_name(UNIX_EPOCH), "1970-01-01T00-00-00-000Z");
    }
}

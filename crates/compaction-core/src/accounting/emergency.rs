//! Limits of resources that no setting can switch off (spec "Compaction core", 5.1).

use serde::{Deserialize, Serialize};

const MIB: u64 = 1024 * 1024;
const HEAP_CEILING: u64 = 1536 * MIB;
const RETAINED_MEMORY: u64 = 128 * MIB;
const CHAT_CHILDREN: u64 = 1_000;

/// What a session holds in memory; what is not known is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSample {
    /// Bytes of the heap in use.
    pub heap_used_bytes: u64,
    /// Bytes of text that the next request would send.
    pub provider_bytes: u64,
    /// Messages of the context.
    pub message_count: u64,
    /// Encoded bytes of pictures in the context.
    pub image_bytes: u64,
    /// Bytes of entries that were loaded and kept.
    pub materialized_resident_bytes: u64,
    /// Bytes of cached renderings.
    pub tui_cached_render_bytes: u64,
    /// Elements of the chat view.
    pub tui_chat_children: u64,
}

/// Above these a session is compacted at the next prompt, whatever the settings say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EmergencyLimits {
    /// Bytes of the heap.
    pub heap_used_bytes: u64,
    /// Bytes of text that the next request would send.
    pub provider_bytes: u64,
    /// Messages of the context.
    pub message_count: u64,
    /// Encoded bytes of pictures.
    pub image_bytes: u64,
}

/// Which limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EmergencyReason {
    /// The heap.
    Heap,
    /// Entries and renderings that are kept in memory.
    RetainedMemory,
    /// Text of the next request.
    ProviderBytes,
    /// Pictures.
    ImageBytes,
    /// The number of messages.
    MessageCount,
}

impl Default for EmergencyLimits {
    fn default() -> Self {
        Self {
            heap_used_bytes: HEAP_CEILING,
            provider_bytes: 24 * MIB,
            message_count: 4_000,
            image_bytes: 64 * MIB,
        }
    }
}

impl EmergencyLimits {
    /// The limits on a machine with so much memory; `None` or 0 if that is not known.
    pub fn for_memory(total_bytes: Option<u64>) -> Self {
        let heap = total_bytes
            .filter(|total| *total > 0)
            .map_or(HEAP_CEILING, |total| HEAP_CEILING.min(total / 2));
        Self {
            heap_used_bytes: heap,
            ..Self::default()
        }
    }

    /// The first limit that a sample exceeds.
    pub fn exceeded_by(&self, sample: &ResourceSample) -> Option<EmergencyReason> {
        let retained = sample
            .materialized_resident_bytes
            .saturating_add(sample.tui_cached_render_bytes);
        let checks = [
            (
                sample.heap_used_bytes > self.heap_used_bytes,
                EmergencyReason::Heap,
            ),
            // These two are reached, not exceeded.
            (
                retained >= RETAINED_MEMORY || sample.tui_chat_children >= CHAT_CHILDREN,
                EmergencyReason::RetainedMemory,
            ),
            (
                sample.provider_bytes > self.provider_bytes,
                EmergencyReason::ProviderBytes,
            ),
            (sample.image_bytes > self.image_bytes, EmergencyReason::ImageBytes),
            (
                sample.message_count > self.message_count,
                EmergencyReason::MessageCount,
            ),
        ];
        checks.into_iter().find_map(|(hit, reason)| hit.then_some(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Exceed = fn(&mut ResourceSample);

    fn at_limit() -> ResourceSample {
        let limits = EmergencyLimits::default();
        ResourceSample {
            heap_used_bytes: limits.heap_used_bytes,
            provider_bytes: limits.provider_bytes,
            message_count: limits.message_count,
            image_bytes: limits.image_bytes,
            materialized_resident_bytes: RETAINED_MEMORY - 1,
            tui_cached_render_bytes: 0,
            tui_chat_children: CHAT_CHILDREN - 1,
        }
    }

    #[test]
    fn each_limit_is_named_and_the_first_one_wins() {
        let limits = EmergencyLimits::default();
        assert_eq!(limits.exceeded_by(&at_limit()), None);
        let steps: [(Exceed, EmergencyReason); 6] = [
            (|s| s.message_count += 1, EmergencyReason::MessageCount),
            (|s| s.image_bytes += 1, EmergencyReason::ImageBytes),
            (|s| s.provider_bytes += 1, EmergencyReason::ProviderBytes),
            (|s| s.tui_chat_children += 1, EmergencyReason::RetainedMemory),
            (
                |s| s.tui_cached_render_bytes += 1,
                EmergencyReason::RetainedMemory,
            ),
            (|s| s.heap_used_bytes += 1, EmergencyReason::Heap),
        ];
        let mut all = at_limit();
        for (exceed, reason) in steps {
            let mut alone = at_limit();
            exceed(&mut alone);
            assert_eq!(limits.exceeded_by(&alone), Some(reason));
            exceed(&mut all);
            assert_eq!(
                limits.exceeded_by(&all),
                Some(reason),
                "the later ones rank first"
            );
        }
    }

    #[test]
    fn the_heap_follows_the_memory_of_the_machine() {
        let heap = |total| EmergencyLimits::for_memory(total).heap_used_bytes;
        assert_eq!(heap(Some(2048 * MIB)), 1024 * MIB);
        assert_eq!(heap(Some(65_536 * MIB)), HEAP_CEILING);
        assert_eq!(heap(Some(0)), HEAP_CEILING);
        assert_eq!(heap(None), HEAP_CEILING);
    }
}

//! Masks of pictures that a provider refused: without one, every later request of the session would be refused too
//! (R16, FB-084).

use foldline_session_model::fold::Context;
use foldline_session_model::message::{Block, Content};
use foldline_session_model::tokens::{PixelSize, TokenCounter};
use foldline_session_model::{EntryDraft, EntryId};

/// The entry to append so that the pictures of an entry are no longer shown to a model: a child of the context's leaf.
/// `None` if the context shows no picture of that entry.
pub fn mask_pictures(
    context: &Context<'_>,
    entry: &EntryId,
    counter: &dyn TokenCounter,
) -> Option<EntryDraft> {
    let mut masks = Vec::new();
    for item in &context.items {
        let Some(content) = item.message.content() else {
            continue;
        };
        if context.log.id(item.source) == entry.as_str() && content.image_count() > 0 {
            masks.push((entry.clone(), notice(content), counter.pictures(content)));
        }
    }
    (!masks.is_empty()).then(|| EntryDraft::picture_mask(&masks))
}

/// `[image 2044x990 removed]`, with the size of a picture that is the only one.
fn notice(content: &Content<'_>) -> String {
    let mut sizes = content.blocks().iter().filter_map(|block| match block {
        Block::Image { data, .. } => Some(PixelSize::of_base64(data)),
        _ => None,
    });
    match (sizes.next().flatten(), sizes.next()) {
        (Some(size), None) => format!("[image {size} removed: the model's provider refused it]"),
        _ => "[image removed: the model's provider refused it]".to_owned(),
    }
}

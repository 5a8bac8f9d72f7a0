//! A document as a page: Markdown to HTML, links to other documents to their pages, a list of
//! all pages beside it.

use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::BACK;
use crate::bench::plot::escape;

/// How pages look, in the light and in the dark.
const STYLE: &str = include_str!("style.css");

/// The page of `document`, whose text is `text`.
pub fn html(
    text: &str,
    document: &Path,
    documents: &[PathBuf],
    libraries: &[(String, String)],
) -> String {
    let root = up(document);
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES);
    let mut body = String::new();
    html::push_html(
        &mut body,
        with_anchors(parser).into_iter().map(|event| match event {
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let dest_url = CowStr::from(target(&dest_url, document, documents));
                Event::Start(Tag::Link { link_type, dest_url, title, id })
            }
            other => other,
        }),
    );
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{}</title>\
         <style>{STYLE}</style></head><body>\n<nav>{}</nav>\n<main>\n{body}</main></body></html>\n",
        escape(&title(text, document)),
        contents(document, &root, documents, libraries)
    )
}

/// The first heading.
fn title(text: &str, document: &Path) -> String {
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    heading.map_or_else(|| document.display().to_string(), |heading| heading.replace('`', ""))
}

/// The way from a document's folder to the root, with a slash behind it if there is one.
fn up(document: &Path) -> String {
    "../".repeat(document.components().count() - 1)
}

/// The list of all pages; decisions and calls are in their indices.
fn contents(
    document: &Path,
    root: &str,
    documents: &[PathBuf],
    libraries: &[(String, String)],
) -> String {
    let mut list = "<p>Documents</p><ul>".to_owned();
    let index = |path: &Path| path.components().count() <= 2 || path.ends_with("README.md");
    for other in documents.iter().filter(|other| index(other)) {
        let name = other.with_extension("").display().to_string();
        let here = if *other == document { " class=\"here\"" } else { "" };
        let page = other.with_extension("html");
        list += &format!("<li{here}><a href=\"{root}{}\">{name}</a></li>", page.display());
    }
    list += "</ul>";
    if !libraries.is_empty() {
        list += "<p>Libraries</p><ul>";
        for (name, page) in libraries {
            list += &format!("<li><a href=\"{root}{page}\">{}</a></li>", escape(name));
        }
        list += "</ul>";
    }
    list
}

/// Where a link leads in the book: a document's page, or the file in the tree.
fn target(link: &str, document: &Path, documents: &[PathBuf]) -> String {
    if link.contains("://") || link.starts_with('#') {
        return link.to_owned();
    }
    let (path, anchor) = link.split_once('#').map_or((link, ""), |(path, anchor)| (path, anchor));
    let place = resolved(path, document);
    let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
    let as_document = [place.clone(), place.join("README.md")];
    match as_document.iter().find(|place| documents.contains(place)) {
        Some(place) => {
            format!("{}{}{anchor}", up(document), place.with_extension("html").display())
        }
        None => format!("{}{BACK}/{}{anchor}", up(document), place.display()),
    }
}

/// The path in the tree that a link in `document` means.
pub fn resolved(link: &str, document: &Path) -> PathBuf {
    let mut place = document.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                place.pop();
            }
            Component::Normal(name) => place.push(name),
            _ => {}
        }
    }
    place
}

/// The links of a document that lead to a file.
#[cfg(test)]
pub fn links(text: &str) -> Vec<String> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. }) => Some(dest_url.into_string()),
            _ => None,
        })
        .filter(|link| !link.contains("://") && !link.starts_with('#'))
        .collect()
}

/// The same with names for headings, as the forges make them: what links name.
fn with_anchors<'a>(events: impl Iterator<Item = Event<'a>>) -> Vec<Event<'a>> {
    let mut out: Vec<Event<'a>> = Vec::new();
    let mut heading: Option<(usize, String)> = None;
    for event in events {
        match (&event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some((out.len(), String::new())),
            (Event::Text(text) | Event::Code(text), Some((_, name))) => name.push_str(text),
            (Event::End(TagEnd::Heading(_)), Some((at, name))) => {
                let anchor = anchor(name);
                if let Some(Event::Start(Tag::Heading { id, .. })) = out.get_mut(*at) {
                    *id = Some(CowStr::from(anchor));
                }
                heading = None;
            }
            _ => {}
        }
        out.push(event);
    }
    out
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Vec<PathBuf> {
        ["README.md", "docs/a.md", "docs/calls/README.md"].map(PathBuf::from).to_vec()
    }

    #[test]
    fn links_lead_to_pages_and_files() {
        let lead = |link: &str, from: &str| target(link, Path::new(from), &documents());
        assert_eq!(lead("docs/a.md", "README.md"), "docs/a.html");
        assert_eq!(lead("../README.md#two", "docs/a.md"), "../README.html#two");
        assert_eq!(lead("calls/", "docs/a.md"), "../docs/calls/README.html");
        assert_eq!(lead("../systems/x.toml", "docs/a.md"), "../../../systems/x.toml");
        assert_eq!(lead("https://x.example/a.md", "docs/a.md"), "https://x.example/a.md");
        assert_eq!(lead("#below", "docs/a.md"), "#below");
    }

    #[test]
    fn a_page_has_its_title_its_anchors_and_the_list() {
        let text =
            "# One `two` & three\n## A heading: here\n| a | b |\n|---|---|\n| c | [d](a.md) |\n";
        let libraries = [("abi".to_owned(), "crates/abi/index.html".to_owned())];
        let page = html(text, Path::new("docs/a.md"), &documents(), &libraries);
        assert!(page.contains("<title>One two &amp; three</title>"), "{page}");
        assert!(page.contains("<h2 id=\"a-heading-here\">"), "{page}");
        assert!(page.contains("<td><a href=\"../docs/a.html\">d</a></td>"), "{page}");
        assert!(page.contains("<li class=\"here\"><a href=\"../docs/a.html\">"), "{page}");
        assert!(page.contains("<a href=\"../crates/abi/index.html\">abi</a>"), "{page}");
    }
}

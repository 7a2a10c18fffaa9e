//! A few shapes of SVG, written as text: all that the plots of a report need.
//!
//! Colours and strokes are classes of the page's style sheet, so that a plot is readable on a light and
//! on a dark screen alike.

use std::fmt::Write;

/// A drawing under way.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    /// An empty drawing.
    pub fn new(width: f64, height: f64) -> Self {
        Svg { width, height, body: String::new() }
    }

    /// A straight line.
    pub fn line(&mut self, from: [f64; 2], to: [f64; 2], class: &str) {
        let ([x1, y1], [x2, y2]) = (from, to);
        self.push(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    /// A line through points.
    pub fn curve(&mut self, points: &[[f64; 2]], class: &str) {
        let mut at = String::new();
        for [x, y] in points {
            // Writing to a string cannot fail.
            let _ = write!(at, "{x:.1},{y:.1} ");
        }
        self.push(format_args!(r#"<polyline class="{class}" points="{}"/>"#, at.trim_end()));
    }

    /// A rectangle that says `title` when the mouse is over it.
    pub fn rectangle(&mut self, corner: [f64; 2], size: [f64; 2], class: &str, title: &str) {
        let ([x, y], [width, height]) = (corner, size);
        let title = escape(title);
        self.push(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"><title>{title}</title></rect>"#
        ));
    }

    /// A dot that says `title` when the mouse is over it.
    pub fn dot(&mut self, [x, y]: [f64; 2], class: &str, title: &str) {
        let title = escape(title);
        self.push(format_args!(
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="2.5"><title>{title}</title></circle>"#
        ));
    }

    /// Words; the class says on which side of the place they stand.
    pub fn text(&mut self, [x, y]: [f64; 2], class: &str, words: &str) {
        let words = escape(words);
        self.push(format_args!(r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{words}</text>"#));
    }

    /// The drawing, with a name for those who cannot see it.
    pub fn finish(self, name: &str) -> String {
        let Svg { width, height, body } = self;
        let name = escape(name);
        format!(
            r#"<svg role="img" aria-label="{name}" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}">{body}</svg>"#
        )
    }

    fn push(&mut self, shape: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{shape}");
    }
}

/// Where a number lies on an axis.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// The numbers at its two ends.
    pub range: [f64; 2],
    /// The places of its two ends.
    pub place: [f64; 2],
}

impl Axis {
    /// The place of a number; numbers beyond an end are put at that end.
    pub fn at(&self, number: f64) -> f64 {
        let [low, high] = self.range;
        let share = ((number - low) / (high - low)).clamp(0.0, 1.0);
        self.place[0] + share * (self.place[1] - self.place[0])
    }
}

/// The text with what HTML would take for its own replaced.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_is_one_element_and_no_word_can_break_it() {
        let mut svg = Svg::new(100.0, 50.0);
        svg.line([0.0, 1.0], [2.0, 3.0], "axis");
        svg.curve(&[[0.0, 0.0], [1.0, 2.5]], "a");
        svg.rectangle([1.0, 2.0], [3.0, 4.0], "b", "x < y & \"z\"");
        svg.dot([1.0, 1.0], "c", "here");
        svg.text([1.0, 1.0], "t", "</svg>");
        let text = svg.finish("a <plot>");
        let tree = elements(&text);
        assert_eq!(tree, ["svg", "line", "polyline", "rect", "title", "circle", "title", "text"]);
        assert!(text.contains("x &lt; y &amp; &quot;z&quot;"), "{text}");
    }

    /// The names of the elements in the order of their beginnings.
    fn elements(text: &str) -> Vec<&str> {
        let beginnings = text.split('<').skip(1).filter(|rest| !rest.starts_with('/'));
        beginnings.map(|rest| rest.split([' ', '>', '/']).next().unwrap_or_default()).collect()
    }

    #[test]
    fn an_axis_may_run_either_way_and_holds_what_is_beyond_it() {
        let axis = Axis { range: [0.0, 2.0], place: [100.0, 0.0] };
        assert_eq!([-1.0, 0.0, 1.0, 5.0].map(|x| axis.at(x)), [100.0, 100.0, 50.0, 0.0]);
    }
}

#!/usr/bin/env bash
# Opens the page of `eval --html` in a real browser without a network and checks what it shows.
#
#   scripts/check-page.sh [PAGE [PICTURE]]
#
# Without PAGE a small one is made. PICTURE is a PNG file for a look at it. Needs Chromium or Chrome, and
# cargo where the page must be made. Exit code 0: every plot is drawn within its frame.
set -euo pipefail
cd "$(dirname "$0")/.."

browser=$(command -v chromium || command -v google-chrome || command -v chromium-browser) || {
    echo "no Chromium or Chrome here; install one" >&2
    exit 2
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
page=${1-$scratch/page.html}
if (($# == 0)); then
    cargo run --release --quiet -- eval --against nccl,oracle,bayes,coordinate --clusters dgx_a100,tcp25g_1gpu \
        --nodes 1,2 --worlds 2 --quiet --html "$page" >"$scratch/text"
fi

# A browser reports what it has laid out: every drawing must have a size, and no shape may leave it.
cat "$page" - >"$scratch/probe.html" <<'PROBE'
<script>
const drawings = [...document.querySelectorAll("svg")];
document.querySelectorAll("details").forEach((d) => (d.open = true));
const outside = drawings.filter((svg) => {
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const box = svg.getBBox();
  return svg.getBoundingClientRect().width === 0 || box.x < -1 || box.y < -1
    || box.x + box.width > width + 1 || box.y + box.height > height + 1;
});
document.title = `drawings ${drawings.length} outside ${outside.length}`
  + ` first ${outside.length ? outside[0].getAttribute("aria-label") : "none"}`;
</script>
PROBE
flags=(--headless --no-sandbox --disable-gpu --hide-scrollbars --host-resolver-rules='MAP * ~NOTFOUND')
"$browser" "${flags[@]}" --dump-dom "file://$scratch/probe.html" >"$scratch/dom" 2>/dev/null
title=$(sed -n 's/.*<title>\(drawings [^<]*\)<.*/\1/p' "$scratch/dom" | head -1)
echo "${title:-the page ran no probe}"
if [[ -n "${2-}" ]]; then
    "$browser" "${flags[@]}" --window-size=1300,2400 --screenshot="$2" "file://$(realpath "$page")" 2>/dev/null
fi
[[ "$title" == drawings\ [1-9]*" outside 0 "* ]]

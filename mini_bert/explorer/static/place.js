// Where the reader is: arriving at a place of the page, and keeping the focus when something is drawn anew.

const FOCUSABLE = "a[href], button, input, select, textarea, [tabindex]";
let release = () => {};

/**
 * Bring an element to the top of the window, and hold it there while what stands above it is still being drawn; as soon
 * as someone scrolls, it is let go. With `focus`, that element gets the keyboard's focus.
 */
export function arrive(element, focus = null) {
  release();
  let top = 0;
  const scroll = () => {
    element.scrollIntoView({ block: "start", behavior: "instant" });
    top = element.getBoundingClientRect().top;
  };
  const moved = () => Math.abs(element.getBoundingClientRect().top - top) > 2 && release();
  const growing = new ResizeObserver(scroll);
  release = () => {
    growing.disconnect();
    removeEventListener("scroll", moved);
    release = () => {};
  };
  scroll();
  growing.observe(document.body);
  addEventListener("scroll", moved, { passive: true });
  focus?.focus({ preventScroll: true });
}

/** Nothing is held any longer. */
export function letGo() {
  release();
}

/** Draw a part of the page anew; what then stands in the place of the element that had the focus gets it. */
export function keepingFocus(root, draw) {
  const focused = root.contains(document.activeElement) ? document.activeElement : null,
    anchor = focused?.closest("[id]");
  const within = (element) => [...element.querySelectorAll(FOCUSABLE)];
  const place = focused && anchor !== focused ? within(anchor).indexOf(focused) : -1;
  draw();
  if (!focused || focused.isConnected) return;
  const again = document.getElementById(anchor.id) ?? root;
  (within(again)[place] ?? again).focus({ preventScroll: true });
}

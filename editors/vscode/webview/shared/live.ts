/**
 * What is read out to those who do not see the page. The regions are made once and stay: a region that comes
 * together with its text is not read by every screen reader.
 */
const regions = new Map<"polite" | "assertive", HTMLElement>();

/** Longer texts are there to be read in the list. */
const LONGEST = 600;

export function makeRegions(): void {
  for (const urgency of ["polite", "assertive"] as const) {
    const region = document.createElement("div");
    region.className = "unseen";
    region.setAttribute("role", urgency === "polite" ? "status" : "alert");
    region.setAttribute("aria-live", urgency);
    region.dataset["live"] = urgency;
    document.body.append(region);
    regions.set(urgency, region);
  }
}

/** Reads a text out; an assertive one at once. */
export function announce(text: string, urgency: "polite" | "assertive" = "polite"): void {
  const region = regions.get(urgency);
  if (!region) {
    return;
  }
  const shown = text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  // The same words again are no change, and would not be read.
  region.textContent = region.textContent === shown ? `${shown}\u00a0` : shown;
}

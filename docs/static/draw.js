// Draws every figure of a page from the specification that stands in it.
addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".drawn")) {
    const { data, layout } = JSON.parse(place.firstElementChild.textContent);
    place.replaceChildren();
    Plotly.newPlot(place, data, { ...layout, template: {} }, { displayModeBar: false, responsive: true });
  }
});

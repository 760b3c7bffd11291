// Draws the diagrams: blocks of code in the language mermaid.
for (const code of document.querySelectorAll("code.language-mermaid")) {
    const diagram = document.createElement("pre");
    diagram.className = "mermaid";
    diagram.textContent = code.textContent;
    code.parentElement.replaceWith(diagram);
}
const dark = /coal|navy|ayu/.test(document.documentElement.className);
mermaid.initialize({ startOnLoad: true, theme: dark ? "dark" : "default" });

extension Assets {
    /// The frame of the page. The script fills it in.
    static let page = #"""
        <!doctype html>
        <html lang="en">
        <head>
          <meta charset="utf-8">
          <meta name="viewport" content="width=device-width, initial-scale=1">
          <title>Strata Studio</title>
          <link rel="icon" href="/studio.svg">
          <link rel="stylesheet" href="/studio.css">
          <script src="/studio.js" defer></script>
        </head>
        <body>
          <a class="skip" href="#main">Skip to the content</a>
          <header>
            <p class="file" id="file">Strata Studio</p>
            <nav aria-label="Pages">
              <a href="#/schema">Schema</a>
              <a href="#/history">History</a>
              <a href="#/snapshots">Snapshots</a>
              <a href="#/file">File</a>
            </nav>
            <p id="live" role="status"></p>
          </header>
          <div class="columns">
            <nav id="tables" aria-label="Tables"></nav>
            <main id="main" tabindex="-1"><p>Loading …</p></main>
          </div>
          <noscript>This page needs JavaScript.</noscript>
        </body>
        </html>
        """#

    /// Three layers.
    static let icon = #"""
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="#2f80ed" stroke-width="1.6">
        <path d="M8 1.5 14.5 5 8 8.5 1.5 5Z M1.5 8 8 11.5 14.5 8 M1.5 11 8 14.5 14.5 11"/></svg>
        """#

    /// The style of the page: one column at 400 pixels, two on wider screens, light and dark.
    static let style = #"""
        :root {
          color-scheme: light dark;
          --text: #1c2024; --quiet: #5a636e; --back: #ffffff; --raised: #f3f5f7; --line: #d5dae0;
          --link: #0b57b0; --strong: #0b57b0; --on-strong: #ffffff; --bad: #b3261e; --good: #1a6e3a; --note: #fff6d6;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --text: #e4e7ea; --quiet: #a0a9b3; --back: #14171a; --raised: #1f2429; --line: #3a424b;
            --link: #8ab8ff; --strong: #8ab8ff; --on-strong: #10151b; --bad: #ff9a91; --good: #7fd79b; --note: #3a3210;
          }
        }
        * { box-sizing: border-box; }
        body { margin: 0; font: 15px/1.45 system-ui, sans-serif; color: var(--text); background: var(--back); }
        a { color: var(--link); }
        a:focus-visible, button:focus-visible, input:focus-visible, select:focus-visible, textarea:focus-visible,
        .scroll:focus-visible, summary:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
        main:focus, h2:focus { outline: none; }
        .skip { position: absolute; left: -999px; }
        .skip:focus { left: 8px; top: 8px; background: var(--back); padding: 6px; z-index: 1; }
        header { display: flex; flex-wrap: wrap; gap: 4px 20px; align-items: baseline; padding: 8px 14px;
          background: var(--raised); border-bottom: 1px solid var(--line); }
        header p { margin: 0; }
        header nav { display: flex; flex-wrap: wrap; gap: 4px 14px; }
        .file { font-weight: 650; overflow-wrap: anywhere; }
        nav [aria-current] { font-weight: 650; text-decoration: none; color: var(--text); }
        #live { color: var(--quiet); font-size: 13px; }
        .columns { display: grid; grid-template-columns: 200px minmax(0, 1fr); }
        #tables { padding: 14px; border-right: 1px solid var(--line); }
        #tables ul { list-style: none; margin: 0; padding: 0; }
        #tables li { display: flex; justify-content: space-between; gap: 8px; padding: 2px 0; overflow-wrap: anywhere; }
        main { padding: 14px 18px 60px; min-width: 0; }
        h2 { margin: 0 0 10px; font-size: 20px; overflow-wrap: anywhere; }
        h3 { margin: 22px 0 6px; font-size: 16px; }
        .quiet, .count { color: var(--quiet); }
        .count { font-variant-numeric: tabular-nums; }
        .scroll { overflow: auto; max-width: 100%; border: 1px solid var(--line); border-radius: 6px; margin: 8px 0; }
        table { border-collapse: collapse; width: 100%; }
        th, td { text-align: left; padding: 4px 10px; border-bottom: 1px solid var(--line); vertical-align: top; }
        tr:last-child > * { border-bottom: 0; }
        thead th { background: var(--raised); white-space: nowrap; font-weight: 600; }
        tbody th { font-weight: 500; }
        .rows td, .rows tbody th { white-space: nowrap; max-width: 340px; overflow: hidden; text-overflow: ellipsis; }
        th.number { text-align: right; }
        td.number { text-align: right; font-variant-numeric: tabular-nums; }
        td.value { white-space: pre-wrap; overflow-wrap: anywhere; }
        .null { color: var(--quiet); font-style: italic; }
        button, .button { font: inherit; padding: 4px 12px; border: 1px solid var(--line); border-radius: 6px; cursor: pointer;
          background: var(--raised); color: var(--text); text-decoration: none; display: inline-block; }
        button.strong { background: var(--strong); color: var(--on-strong); border-color: var(--strong); }
        button.plain { border: 0; padding: 0; background: none; font-weight: 600; }
        button:disabled { opacity: 0.5; cursor: default; }
        input, select, textarea { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line);
          border-radius: 6px; padding: 4px 8px; max-width: 100%; }
        textarea { width: 100%; min-height: 80px; }
        form.filter { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; margin: 0 0 8px; }
        form.filter input { flex: 1 1 220px; min-width: 0; }
        .field { margin: 0 0 12px; max-width: 640px; }
        .field > label { display: block; font-weight: 600; }
        .field input[type=text] { width: 100%; }
        .bar { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: center; margin: 8px 0; }
        .error { color: var(--bad); border-left: 4px solid var(--bad); padding: 6px 10px; background: var(--raised);
          overflow-wrap: anywhere; }
        .done { color: var(--good); border-left: 4px solid var(--good); padding: 6px 10px; background: var(--raised); }
        .newer { background: var(--note); border: 1px solid var(--line); border-radius: 6px; padding: 6px 10px; }
        .change { margin: 2px 0; }
        .before { color: var(--bad); } .after { color: var(--good); }
        pre { background: var(--raised); padding: 8px 10px; border-radius: 6px; overflow: auto; white-space: pre-wrap; margin: 6px 0; }
        ul.flat { list-style: none; padding: 0; margin: 6px 0; columns: 240px; }
        ol.flat, .members { padding-left: 28px; margin: 6px 0; }
        .members li { overflow-wrap: anywhere; padding: 2px 0; }
        .members button { margin-right: 4px; }
        ul.flat li { overflow-wrap: anywhere; padding: 1px 0; }
        .share { height: 10px; min-width: 1px; background: var(--link); border-radius: 3px; }
        svg { display: block; }
        svg .box { fill: var(--raised); stroke: var(--line); }
        svg a:focus-visible { outline: none; }
        svg a:focus-visible .box, svg a:hover .box { stroke: var(--link); stroke-width: 2.5; }
        svg text { fill: var(--text); font-size: 12px; }
        svg .title { font-weight: 650; font-size: 13px; }
        svg .type { fill: var(--quiet); }
        svg .edge { fill: none; stroke: var(--quiet); stroke-width: 1.3; }
        @media (max-width: 640px) {
          .columns { grid-template-columns: minmax(0, 1fr); }
          #tables { border-right: 0; border-bottom: 1px solid var(--line); padding: 8px 14px; max-height: 132px; overflow: auto; }
          #tables ul { columns: 2; }
          main { padding: 12px 12px 60px; }
        }
        """#
}

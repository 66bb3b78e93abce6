extension Report {
    /// Returns one self-contained page: a chart of the totals, a time line of each configuration, and the tables.
    ///
    /// The page has no scripts and loads nothing. It follows the reader's choice of light or dark, and fits a window of 400 pixels.
    public func html(title: String) -> String {
        let tables = [
            runs.contains { $0.stack != nil } ? Self.html(stackTable()) : "",
            runs.contains { $0.operation != nil } ? Self.html(operationTable()) : "",
        ]
        let remarks = (extraLines() + notes).map { "<p>\(Self.escaped($0))</p>" }
        let page = """
            <!doctype html><html lang="en"><head><meta charset="utf-8"><title>\(Self.escaped(title))</title>
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
            <style>\(Self.style)</style></head><body><h1>\(Self.escaped(title))</h1>
            <p><code>\(Self.escaped(machine.command))</code></p>
            \(summary())
            \(Timelines(runs).html())
            <h2>All figures</h2>\(tables.joined(separator: "\n"))
            \(remarks.joined(separator: "\n"))
            <footer><p>\(Self.escaped(machine.summary))</p></footer></body></html>
            """
        return page + "\n"
    }

    private static func html(_ table: TextTable) -> String {
        let head = table.header.map { "<th scope=\"col\">\(escaped($0))</th>" }.joined()
        let rows = table.rows.map { "<tr>" + $0.map { "<td>\(escaped($0))</td>" }.joined() + "</tr>" }.joined(separator: "\n")
        return """
            <div class="wide" tabindex="0" role="region" aria-label="All figures"><table class="figures names-\(table.names)">\
            <thead><tr>\(head)</tr></thead><tbody>
            \(rows)</tbody></table></div>
            """
    }

    static func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.append(character)
            }
        }
        return result
    }

    private static let style = """
        :root{color-scheme:light dark;--back:#fff;--text:#1f2328;--dim:#59636e;--line:#d8dee4;--lane:#8c959f26;--main:#0969da;\
        --work:#a8b3bf;--save:#e0701a}
        @media (prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--dim:#9aa4af;--line:#30363d;--lane:#8c959f26;\
        --main:#58a6ff;--work:#5f6b78;--save:#f0883e}}
        *{box-sizing:border-box}
        body{max-width:1100px;margin:0 auto;padding:1rem;font:15px/1.45 system-ui,sans-serif;color:var(--text);\
        background:var(--back);overflow-wrap:anywhere}
        h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.2rem;margin:2.2rem 0 .5rem}h3{font-size:1rem;margin:1.6rem 0 .3rem}
        p{margin:.4rem 0;max-width:75ch}code{font-size:.85em}footer{margin-top:2rem;color:var(--dim);font-size:.85rem}
        table{border-collapse:collapse;font-variant-numeric:tabular-nums}th{font-weight:normal;text-align:left}
        .legend{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;margin:.8rem 0;padding:0;list-style:none;font-size:.85rem;color:var(--dim)}
        .legend li:before{content:"";display:inline-block;width:.8rem;height:.8rem;margin-right:.4rem;vertical-align:-.1rem;\
        background:var(--work)}
        .legend .main:before{background:var(--main)}.legend .save:before{background:var(--save)}
        .legend .range:before{height:2px;vertical-align:.3rem;background:var(--text)}
        .bars{width:100%;table-layout:fixed;font-size:.9rem}.bars th:first-child{width:26%}
        .bars thead th{color:var(--dim)}.bars th[scope=rowgroup]{padding-top:.7rem;font-weight:600}
        .bars th[scope=row]{padding-right:.5rem;line-height:1.2}.bars td{padding:.1rem 1rem .1rem 0;vertical-align:middle}
        .bars td div{display:flex;align-items:center;gap:.5rem}.bars b{flex:none;width:3.1rem;text-align:right;\
        font-weight:normal;white-space:nowrap}
        .bars span{position:relative;flex:1;height:1rem;background:var(--lane)}.bars span i{position:absolute;height:100%;\
        background:var(--work)}.bars .main i{background:var(--main)}
        .bars u{position:absolute;top:calc(50% - 1px);min-width:1px;height:2px;background:var(--text)}
        .axis,.bars span.axis{position:relative;display:block;height:1.1rem;background:none;font-size:.75rem;color:var(--dim)}
        .axis i,.bars .axis i{position:absolute;height:auto;background:none;font-style:normal;transform:translateX(-50%);\
        white-space:nowrap}
        .axis i:first-child{transform:none}.axis i.end{transform:translateX(-100%)}
        figure{margin:0}figure p{margin:.7rem 0 .1rem;font-size:.9rem}
        .lanes{display:grid;grid-template-columns:5.2rem 1fr;font-size:.75rem;line-height:24px;color:var(--dim)}
        .lanes>span:first-child{overflow:hidden;white-space:nowrap;text-overflow:ellipsis}
        svg{display:block;width:100%;background:repeating-linear-gradient(90deg,var(--line) 0 1px,transparent 1px var(--step))}
        svg rect{fill:var(--lane)}.main{fill:var(--main)}.work{fill:var(--work)}.save{fill:var(--save)}
        @media (max-width:600px){.bars td{padding-right:.5rem}.bars td div{gap:.3rem}.bars b{width:2.6rem}.bars .axis i:nth-child(even){display:none}.lanes{grid-template-columns:\
        4.6rem 1fr}}
        .wide{overflow-x:auto}.figures{font-size:.85rem;overflow-wrap:normal;white-space:nowrap}
        .figures th,.figures td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right}
        .figures th{color:var(--dim)}.names-3 :is(th,td):nth-child(-n+3){text-align:left}
        """
}

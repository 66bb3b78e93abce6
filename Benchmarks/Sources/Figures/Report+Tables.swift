extension Report {
    /// Returns a table of the runs that have a stack: how long main was blocked, and the total cost.
    ///
    /// "/ siblings" is the total divided by that of siblings on the same store and routing. "/ field" is the total divided by
    /// that of the same stack on SQLite with the routing `ancestors`. "hops/obj." is the number of requests per object that contexts
    /// sent to their parents.
    public func stackTable() -> TextTable {
        var table = TextTable(
            header: [
                "stack", "store", "routing", "total s", "min-max", "/ siblings", "/ field", "main CPU", "main busy", "stall ms",
                "missed 60",
                "missed 120", "hops/obj.", "objects/s", "saves/s", "file MB", "peak MB",
            ], names: 3)
        for row in runs where row.stack != nil {
            guard let total = row.totalSeconds else { continue }
            let peer = runs.first {
                $0.stack == "siblings" && $0.store == row.store && $0.routing == row.routing && $0.benchmark == row.benchmark
            }
            let field = runs.first {
                $0.stack == row.stack && $0.store == "sqlite" && $0.routing == "ancestors" && $0.benchmark == row.benchmark
            }
            let perSecond = total.median > 0 ? 1 / total.median : 0
            table.rows.append([
                row.stack ?? "", row.store ?? "", row.routing ?? "", Shown.number(total.median),
                "\(Shown.number(total.min))-\(Shown.number(total.max))",
                peer?.totalSeconds.map { Shown.ratio(total.median / $0.median) } ?? "-",
                field?.totalSeconds.map { Shown.ratio(total.median / $0.median) } ?? "-",
                Shown.percent(row.mainCPUSeconds?.median ?? 0, of: total.median),
                Shown.percent(row.mainBusySeconds?.median ?? 0, of: total.median),
                Shown.number(row.longestStallMilliseconds?.median ?? 0), Shown.number(row.missedFrames60?.median ?? 0),
                Shown.number(row.missedFrames120?.median ?? 0), Shown.number(row.hopsPerObject?.median ?? 0),
                Shown.number(Double(row.objects) * perSecond),
                Shown.number(Double(row.saves ?? 0) * perSecond), Shown.megabytes(row.fileBytes ?? 0),
                Shown.megabytes(row.peakMemoryBytes ?? 0),
            ])
        }
        return table
    }

    /// Returns a table of single operations on several engines. Ratios compare with the named engine in the same operation.
    public func operationTable() -> TextTable {
        let peers = runs.contains { $0.engine == "grdb" } ? ["grdb", "grdb-sql"] : ["sqlite-raw", "lmdb-raw"]
        var table = TextTable(
            header: ["operation", "engine", "durability", "ns/object", "min-max"] + peers.map { "/ \($0)" }, names: 3)
        for row in runs where row.operation != nil {
            guard let cost = row.nanosecondsPerObject else { continue }
            func ratio(_ engine: String) -> String {
                let peer = runs.first {
                    $0.operation == row.operation && $0.engine == engine && $0.durability == row.durability
                        && $0.objects == row.objects
                }
                return peer?.nanosecondsPerObject.map { Shown.ratio(cost.median / $0.median) } ?? "-"
            }
            table.rows.append(
                [
                    row.operation ?? "", row.engine ?? "", row.durability, Shown.number(cost.median),
                    "\(Shown.number(cost.min))-\(Shown.number(cost.max))",
                ] + peers.map(ratio))
        }
        return table
    }

    /// Returns the whole report for display: the tables, the notes and the machine.
    public func text(_ format: TextTable.Format) -> String {
        var parts: [String] = []
        if runs.contains(where: { $0.stack != nil }) { parts.append(stackTable().text(format)) }
        if runs.contains(where: { $0.operation != nil }) { parts.append(operationTable().text(format)) }
        parts += extraLines()
        parts.append(contentsOf: notes)
        parts.append(machine.summary)
        return parts.joined(separator: "\n\n")
    }

    /// Returns a line for each configuration that has further figures.
    func extraLines() -> [String] {
        runs.compactMap { row in
            guard let extra = row.extraMilliseconds, let stack = row.stack else { return nil }
            let values = extra.sorted { $0.key < $1.key }.map { "\($0.key) \(Shown.number($0.value.median)) ms" }
            return "\(stack), \(row.store ?? ""), \(row.routing ?? ""): \(values.joined(separator: ", "))"
        }
    }
}

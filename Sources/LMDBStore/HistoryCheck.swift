import PageCodec
import StoreInterface

/// Whether the history has one row a save, without gaps, to the newest one.
enum HistoryCheck {
    /// O(saves). Empty when nothing is wrong, or when there is no history.
    static func problems(_ snapshot: LMDBSnapshot, atMost most: Int) throws -> [String] {
        var problems: [String] = []
        var last: Generation?
        for row in try snapshot.historyRows() where problems.count < most {
            if let last, row.number != last &+ 1 { problems.append("history: save \(row.number) follows save \(last)") }
            if row.number == 0 { problems.append("history: has a row of save 0, which is none") }
            last = row.number
            do {
                let written = try ChangeSetCodec.decode(row.bytes).generation
                if written != row.number { problems.append("history: the row of save \(row.number) is of save \(written)") }
            } catch {
                problems.append("the history of save \(row.number): \(error)")
            }
        }
        if let last, last != snapshot.generation, problems.count < most {
            problems.append("history: ends with save \(last), but the newest is \(snapshot.generation)")
        }
        return problems
    }
}

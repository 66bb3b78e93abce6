import PageCodec
import StoreInterface

/// Whether the history has one row a save, without gaps, to the newest one.
enum HistoryCheck {
    /// O(saves). Empty when nothing is wrong, or when there is no history.
    static func problems(_ snapshot: LMDBSnapshot, atMost most: Int) throws -> [String] {
        var problems: [String] = []
        var rows: [(number: Generation, written: Generation)] = []
        for row in try snapshot.historyRows() where problems.count < most {
            var written = row.number
            do { written = try ChangeSetCodec.decode(row.bytes).generation } catch {
                problems.append("the history of save \(row.number): \(error)")
            }
            rows.append((row.number, written))
        }
        return Array((problems + HistoryOrder.problems(rows, newest: snapshot.generation)).prefix(most))
    }
}

import PageCodec
import StoreInterface
import StoreModel

/// A check that the history has one row per save, without gaps, up to the newest save.
enum HistoryCheck {
    /// Returns the faults; empty if there are none, or if there is no history. O(saves).
    static func problems(_ snapshot: LMDBSnapshot, atMost most: Int) throws -> [String] {
        var problems: [String] = []
        var rows: [(number: Generation, written: Generation)] = []
        for row in try snapshot.historyRows() where problems.count < most {
            var written = row.save
            do { written = try snapshot.store.decoded(row.bytes, of: row.save).generation } catch {
                problems.append("the history of save \(row.save): \(error)")
            }
            rows.append((row.save, written))
        }
        return Array((problems + HistoryOrder.problems(rows, newest: snapshot.generation)).prefix(most))
    }
}

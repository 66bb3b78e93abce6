import LMDB
import PageCodec

/// The data needed to read a page of one entity, behind one reference, so that a read copies no arrays.
final class EntityTable: Sendable {
    let pages: Database
    /// The table of out-of-line values.
    let large: Database
    let layout: PageLayout
    /// The index over each column of data only; nil for columns of other types and without one.
    let dataIndexes: [Database?]

    init(pages: Database, large: Database, layout: PageLayout, dataIndexes: [Database?]) {
        self.pages = pages
        self.large = large
        self.layout = layout
        self.dataIndexes = dataIndexes
    }
}

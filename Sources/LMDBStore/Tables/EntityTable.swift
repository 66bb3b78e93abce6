import LMDB
import PageCodec

/// What reading a page of one entity needs, behind one reference, so that a read copies no arrays.
final class EntityTable: Sendable {
    let pages: Database
    /// Values that lie outside of the pages.
    let large: Database
    let layout: PageLayout

    init(pages: Database, large: Database, layout: PageLayout) {
        self.pages = pages
        self.large = large
        self.layout = layout
    }
}

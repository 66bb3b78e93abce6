import LMDB
import PageCodec

/// What reading a page of one entity needs, behind one reference, so that a read copies no arrays.
final class EntityTable: Sendable {
    let pages: Database
    let layout: PageLayout

    init(pages: Database, layout: PageLayout) {
        self.pages = pages
        self.layout = layout
    }
}

import StoreInterface

/// Where a column of a newer schema is in the pages of an older one.
public enum ColumnSource: Sendable, Hashable {
    /// The number of the column there.
    case stored(Int)
    /// As ``stored(_:)``, but where the page has null the object has this value.
    case filled(Int, Value)
    /// The column is newer than the page: all of its objects have this value.
    case constant(Value)
}

/// How pages of one older schema number are read with a newer layout. Made when a file is opened, shared by all of its pages.
public final class PageTranslation: Sendable {
    /// The columns that the pages have.
    let columns: ContiguousArray<PageLayout.Column>
    /// By column of the newer layout.
    let sources: [ColumnSource]
    /// Of stored columns, what their cells are to be read as: that of the newer layout where a wider type has other values.
    private let codes: [ColumnCode]
    /// Whether the pages have just the columns of the newer layout, so that nothing is to be translated.
    let isIdentity: Bool

    /// - Precondition: each source names a column of `older`, whose type is the same or widens to the newer one.
    init(_ older: EntitySchema, sources: [ColumnSource], newer: EntitySchema) {
        precondition(sources.count == newer.columns.count, "one source a column")
        columns = PageLayout.columns(of: older).columns
        self.sources = sources
        var isIdentity = older.columns.count == newer.columns.count
        codes = zip(sources, newer.columns).enumerated().map { position, pair in
            switch pair.0 {
            case .stored(let column):
                let type = older.columns[column].type
                if column != position || type != pair.1.type { isIdentity = false }
                return ColumnCode(pair.1.type == .uint64 ? .uint64 : type)
            case .filled(let column, _):
                isIdentity = false
                return ColumnCode(pair.1.type == .uint64 ? .uint64 : older.columns[column].type)
            case .constant:
                isIdentity = false
                return ColumnCode(pair.1.type)
            }
        }
        self.isIdentity = isIdentity
    }

    /// A column of the newer layout in a page that is read through this.
    enum Place {
        case section(ObjectPage.Section)
        case filled(ObjectPage.Section, Value)
        case constant(Value)
    }

    func place(_ column: Int, in page: ObjectPage) -> Place {
        switch sources[column] {
        case .stored(let source): return .section(section(source, column, page))
        case .filled(let source, let value): return .filled(section(source, column, page), value)
        case .constant(let value): return .constant(value)
        }
    }

    private func section(_ source: Int, _ column: Int, _ page: ObjectPage) -> ObjectPage.Section {
        var section = page.section(source)
        section.code = codes[column]
        return section
    }

    /// The page's own column when its cells can be copied as they lie; nil when they cannot.
    func copyable(_ column: Int, as code: ColumnCode) -> Int? {
        if case .stored(let source) = sources[column], columns[source].code == code { source } else { nil }
    }
}

extension ObjectPage {
    /// Where a column lies that is not in its place: the page is of an older schema. Precondition: the layout has the column.
    @inline(never)
    func olderPlace(_ column: Int) -> PageTranslation.Place {
        // Right because the layout that the page was made with keeps the translation, and whoever made the page keeps the layout.
        guard let translation else { return .constant(.null) }
        return translation._withUnsafeGuaranteedRef { $0.place(column, in: self) }
    }

    /// The value of a column in a page of an older schema.
    @inline(never)
    func olderValue(_ slot: Int, _ column: Int) throws(PageError) -> Value {
        switch olderPlace(column) {
        case .constant(let value): return value
        case .section(let section):
            return section.nulls >> UInt64(slot) & 1 != 0 ? .null : try value(slot, in: section)
        case .filled(let section, let fill):
            return section.nulls >> UInt64(slot) & 1 != 0 ? fill : try value(slot, in: section)
        }
    }

    /// The candidates whose value in a column of an older page passes a test, asked one by one.
    @inline(never)
    func olderMask(_ column: Int, _ candidates: UInt64, _ test: (Value) -> Bool) throws(PageError) -> UInt64 {
        if case .constant(let value) = olderPlace(column) { return test(value) ? candidates : 0 }
        var result: UInt64 = 0
        for slot in SlotIterator(candidates) where test(try olderValue(slot, column)) { result |= 1 << UInt64(slot) }
        return result
    }

    /// The section of a column with which a condition can go on as in a page of the current schema; nil when it cannot.
    @inline(never)
    func olderSection(_ column: Int) -> Section? {
        if case .section(let section) = olderPlace(column) { section } else { nil }
    }

    /// Where the encoder finds cells of a column that it can copy as they lie.
    func copyableColumn(_ column: Int, as code: ColumnCode) -> Int? {
        if column < columnCount { return column }
        // As in `olderPlace`.
        return translation?._withUnsafeGuaranteedRef { $0.copyable(column, as: code) }
    }
}

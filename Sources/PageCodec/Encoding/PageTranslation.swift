import StoreInterface
import StoreModel

/// The source of a newer schema's column in the pages of an older schema.
public enum ColumnSource: Sendable, Hashable {
    /// The column in the older schema.
    case stored(ColumnIndex)
    /// The same as ``stored(_:)``, but a null in the page is read as this value.
    case filled(ColumnIndex, Value)
    /// The column is newer than the page. All objects of the page have this value.
    case constant(Value)
}

/// The translation of pages of one older schema number to a newer layout. It is created when a file is opened, and all pages
/// of the file share it.
public final class PageTranslation: Sendable {
    /// The columns of the pages.
    let columns: ContiguousArray<PageLayout.Column>
    /// The sources, per column of the newer layout.
    let sources: [ColumnSource]
    /// The type in which to read the cells of each stored column. It is the newer layout's type if a wider type has other
    /// values.
    private let codes: [ColumnCode]
    /// Whether the pages have exactly the columns of the newer layout, so that no translation is needed.
    let isIdentity: Bool

    /// Creates a translation.
    /// - Precondition: Each source names a column of `older` whose type is the same as the newer type or widens to it.
    init(_ older: EntitySchema, sources: [ColumnSource], newer: EntitySchema) {
        precondition(sources.count == newer.columns.count, "one source per column")
        columns = PageLayout.columns(of: older).columns
        self.sources = sources
        var isIdentity = older.columns.count == newer.columns.count
        codes = zip(sources, newer.columns).enumerated().map { position, pair in
            switch pair.0 {
            case .stored(let column):
                let type = older.columns[column].type
                if column.rawValue != position || type != pair.1.type { isIdentity = false }
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

    /// The location of a column of the newer layout in a translated page.
    enum ColumnContent {
        case section(ObjectPage.Section)
        case filled(ObjectPage.Section, Value)
        case constant(Value)
    }

    func content(_ column: ColumnIndex, in page: ObjectPage) -> ColumnContent {
        switch sources[column] {
        case .stored(let source): return .section(section(source, column: column, in: page))
        case .filled(let source, let value): return .filled(section(source, column: column, in: page), value)
        case .constant(let value): return .constant(value)
        }
    }

    private func section(_ source: ColumnIndex, column: ColumnIndex, in page: ObjectPage) -> ObjectPage.Section {
        var section = page.section(source)
        section.code = codes[column]
        return section
    }

    /// Returns the page's own column if its cells can be copied unchanged, or nil.
    func copyable(_ column: ColumnIndex, as code: ColumnCode) -> ColumnIndex? {
        if case .stored(let source) = sources[column], columns[source].code == code { source } else { nil }
    }
}

extension ObjectPage {
    /// Returns the location of a column in a page of an older schema. Precondition: the layout has the column.
    @inline(never)
    func olderContent(_ column: ColumnIndex) -> PageTranslation.ColumnContent {
        // Right because the page's layout keeps the translation alive, and the creator of the page keeps the layout alive.
        guard let translation else { return .constant(.null) }
        return translation._withUnsafeGuaranteedRef { $0.content(column, in: self) }
    }

    /// Returns the value of a column in a page of an older schema.
    @inline(never)
    func olderValue(_ slot: Int, _ column: ColumnIndex) throws(PageError) -> Value {
        switch olderContent(column) {
        case .constant(let value): return value
        case .section(let section):
            return section.nulls >> UInt64(slot) & 1 != 0 ? .null : try value(slot, in: section)
        case .filled(let section, let fill):
            return section.nulls >> UInt64(slot) & 1 != 0 ? fill : try value(slot, in: section)
        }
    }

    /// Returns the candidates whose value in a column of an older page passes a test. Tests one value at a time.
    @inline(never)
    func olderMask(_ column: ColumnIndex, among candidates: UInt64, _ test: (Value) -> Bool) throws(PageError) -> UInt64 {
        if case .constant(let value) = olderContent(column) { return test(value) ? candidates : 0 }
        var result: UInt64 = 0
        for slot in SlotIterator(candidates) where test(try olderValue(slot, column)) { result |= 1 << UInt64(slot) }
        return result
    }

    /// Returns the section of a column if a condition can read it as in a page of the current schema, or nil.
    @inline(never)
    func olderSection(_ column: ColumnIndex) -> Section? {
        if case .section(let section) = olderContent(column) { section } else { nil }
    }

    /// Returns the column whose cells the encoder can copy unchanged, or nil.
    func copyableColumn(_ column: ColumnIndex, as code: ColumnCode) -> ColumnIndex? {
        if column.rawValue < columnCount { return column }
        // Right for the same reason as in `olderContent`.
        return translation?._withUnsafeGuaranteedRef { $0.copyable(column, as: code) }
    }
}

import Datasets
import StoreInterface

/// Generates a music library in the shape of the Chinook sample: 10 entities, most objects in a few of them, and a many-to-many
/// relationship.
public enum MusicLibrary {
    /// The number of objects and links at the usual size, which is that of Chinook.
    public static let usualRowCount = 15_607

    /// - Parameters:
    ///   - rows: The approximate number of objects and links together. The shape is scaled to it.
    ///   - seed: The seed of the random numbers. The same seed gives the same library on every machine.
    public static func make(rows: Int = usualRowCount, seed: UInt64 = 1) -> Dataset {
        var maker = MusicLibraryMaker(scale: Double(rows) / Double(usualRowCount), seed: seed)
        return maker.make()
    }
}

struct MusicLibraryMaker {
    private let scale: Double
    private var random: SeededNumbers
    private var names = PropertyNames(tableCount: 10)
    private var tables: [Table] = []

    private enum Number: Int { case artist, album, genre, mediaType, track, employee, customer, invoice, invoiceLine, playlist }

    init(scale: Double, seed: UInt64) {
        self.scale = scale
        random = SeededNumbers(seed: seed)
    }

    mutating func make() -> Dataset {
        makeCatalogue()
        makeSales()
        let link = makePlaylists()
        return Dataset(name: "generated music library", tables: tables, links: [link])
    }

    private func scaled(_ count: Int) -> Int { max(1, Int((Double(count) * scale).rounded())) }

    private mutating func makeCatalogue() {
        add("Artist", count: scaled(275), makers: [("name", .string, { .string($0.title(words: 1...3)) })])
        add(
            "Album", count: scaled(347), makers: [("title", .string, { .string($0.title(words: 1...5)) })],
            references: [("artist", .artist, 1)])
        add("Genre", count: min(25, scaled(25)), makers: [("name", .string, { .string($0.title(words: 1...2)) })])
        add("MediaType", count: min(5, scaled(5)), makers: [("name", .string, { .string($0.title(words: 2...3)) })])
        add(
            "Track", count: scaled(3503),
            makers: [
                ("name", .string, { .string($0.title(words: 1...5)) }),
                ("composer", .string, { $0.below(4) == 0 ? .null : .string($0.title(words: 2...5)) }),
                ("milliseconds", .int32, { .int(Int64(60_000 + $0.below(500_000))) }),
                ("bytes", .int32, { .int(Int64(2_000_000 + $0.below(20_000_000))) }),
                ("unitPrice", .double, { .double($0.below(10) == 0 ? 1.99 : 0.99) }),
            ], references: [("album", .album, 1), ("mediaType", .mediaType, 1), ("genre", .genre, 1)])
    }

    private mutating func makeSales() {
        add(
            "Employee", count: min(8, scaled(8)), makers: person + [("title", .string, { .string($0.title(words: 2...3)) })],
            references: [("reportsTo", .employee, 0.8)])
        add(
            "Customer", count: scaled(59),
            makers: person + [("company", .string, { $0.below(6) == 0 ? .string($0.title(words: 1...3)) : .null })],
            references: [("supportRep", .employee, 1)])
        add(
            "Invoice", count: scaled(412),
            makers: [
                ("invoiceDate", .date, { .double(Double(86_400 * (2_900 + $0.below(1_800)))) }),
                ("billingCity", .string, { .string($0.title(words: 1...2)) }),
                ("billingCountry", .string, { .string($0.title(words: 1...2)) }),
                ("total", .double, { .double(Double(99 + $0.below(2_000)) / 100) }),
            ], references: [("customer", .customer, 1)])
        add(
            "InvoiceLine", count: scaled(2240),
            makers: [
                ("unitPrice", .double, { .double($0.below(10) == 0 ? 1.99 : 0.99) }),
                ("quantity", .int16, { .int(Int64(1 + $0.below(3))) }),
            ], references: [("invoice", .invoice, 1), ("track", .track, 1)])
    }

    private mutating func makePlaylists() -> Link {
        add("Playlist", count: scaled(18), makers: [("name", .string, { .string($0.title(words: 1...2)) })])
        let playlist = Number.playlist.rawValue
        let track = Number.track.rawValue
        let wanted = min(scaled(8715), tables[playlist].rowCount * tables[track].rowCount)
        var pairs: Set<Link.Pair> = []
        var ordered: [Link.Pair] = []
        while ordered.count < wanted {
            let pair = Link.Pair(
                source: Int32(random.below(tables[playlist].rowCount)), destination: Int32(random.below(tables[track].rowCount)))
            if pairs.insert(pair).inserted { ordered.append(pair) }
        }
        ordered.sort { ($0.source, $0.destination) < ($1.source, $1.destination) }
        return Link(
            name: names.take("tracks", in: playlist), inverse: names.take("playlists", in: track), source: playlist,
            destination: track, pairs: ordered)
    }

    private typealias Maker = (String, ColumnType, (inout SeededNumbers) -> Value)

    private var person: [Maker] {
        [
            ("firstName", .string, { .string($0.title(words: 1...1)) }),
            ("lastName", .string, { .string($0.title(words: 1...1)) }),
            ("address", .string, { .string("\(1 + $0.below(999)) \($0.title(words: 1...2))") }),
            ("city", .string, { .string($0.title(words: 1...2)) }),
            ("country", .string, { .string($0.title(words: 1...1)) }),
            ("postalCode", .string, { .string("\(10_000 + $0.below(89_999))") }),
            (
                "phone", .string,
                { $0.below(10) == 0 ? .null : .string("+\(1 + $0.below(90)) \(1_000_000 + $0.below(8_999_999))") }
            ),
            ("email", .string, { .string("\($0.word(4...9))@\($0.word(4...9)).example") }),
        ]
    }

    /// Adds a table. References are (name, destination, share of rows that have one).
    private mutating func add(
        _ name: String, count: Int, makers: [Maker], references: [(String, Number, Double)] = []
    ) {
        let number = tables.count
        tables.append(Table(name: name, attributes: [], rowCount: count))
        for (attribute, type, make) in makers {
            let values = (0..<count).map { _ in make(&random) }
            tables[number].attributes.append(
                TableAttribute(
                    name: names.take(attribute, in: number), type: type, isOptional: values.contains(.null), values: values))
        }
        for (reference, destination, share) in references {
            let far = tables[destination.rawValue].rowCount
            let rows = (0..<count).map { _ in
                random.below(1000) < Int(share * 1000) ? Int32(random.below(far)) : TableReference.nobody
            }
            tables[number].references.append(
                TableReference(
                    name: names.take(reference, in: number),
                    inverse: names.take(PropertyNames.plural(ofTable: name), in: destination.rawValue),
                    destination: destination.rawValue, rows: rows))
        }
    }
}

import Foundation
import Strata

// Models as people write them for SwiftData: no annotations where the type says enough, classes that are not final, enums and
// structures as they are.

/// A collection of comics.
enum Shelves {
    enum ReadingDirection: String, Codable { case leftToRight, rightToLeft }

    struct Position: Codable, Equatable {
        var page: Int
        var offset: Double?
    }

    @Model final class Shelf {
        @Attribute(.unique) var id: UUID
        var name: String
        @Relationship(deleteRule: .cascade, inverse: \Volume.shelf) var volumes: [Volume]?

        init(id: UUID = UUID(), name: String, volumes: [Volume]? = []) {
            self.id = id
            self.name = name
            self.volumes = volumes
        }
    }

    @Model final class Volume {
        // The relationships come first, so that the numbers of the others depend on types.
        var labels: [Label]
        var marks = [Mark]()
        var shelf: Shelf?
        var id = UUID()
        var title: String
        var direction: ReadingDirection = ReadingDirection.rightToLeft
        var lastDirection: ReadingDirection?
        var position: Position?
        var added = Date.now
        @Relationship(deleteRule: .cascade) var cover: Cover?

        init(title: String, labels: [Label] = [], shelf: Shelf? = nil) {
            self.title = title
            self.labels = labels
            self.shelf = shelf
        }
    }

    /// One end of this many-to-many relationship is annotated.
    @Model final class Label {
        var text: String
        @Relationship(inverse: \Volume.labels) var volumes: Set<Volume>

        init(text: String) {
            self.text = text
            volumes = []
        }
    }

    @Model class Mark {
        var page: Int
        var volume: Volume

        init(page: Int, volume: Volume) {
            self.page = page
            self.volume = volume
        }
    }

    @Model final class Cover {
        var data = Data([1, 2, 3])
        var volume: Volume?
        init() {}
    }

    static let types: [any PersistentModel.Type] = [Shelf.self, Volume.self, Label.self, Mark.self, Cover.self]
}

/// Money that was spent.
enum Spending {
    enum Currency: String, Codable, CaseIterable { case euro, krone }
    enum Priority: Int { case low = 1, high = 10 }
    enum Method: Codable, Equatable {
        case cash
        case card(number: String)
        case split([Double])
    }
    struct Place: Codable, Equatable {
        var name: String
        var latitude = 0.0
        var notes: [String]?
    }
    struct Flags: OptionSet, Codable {
        var rawValue: Int
        static let shared = Flags(rawValue: 1)
        static let late = Flags(rawValue: 2)
    }

    @Model class Receipt {
        var amount: Decimal
        var tip: Decimal?
        var currency: Currency
        var fallback: Currency?
        var priority = Priority.low
        var other: Priority?
        var method: Method = Method.cash
        var methods: [Method] = []
        var place: Place?
        var places: [Place]
        var tags: [String] = []
        var counts: [String: Int] = [:]
        var words: Set<String> = []
        var shares: [Decimal]?
        var history: [Currency] = []
        var flags: Flags = []
        var number: Int64 = 0
        @Attribute(.indexed) var state: Currency = Currency.euro
        var lines: [Line]? = []

        init(amount: Decimal, currency: Currency, places: [Place] = []) {
            self.amount = amount
            self.currency = currency
            self.places = places
        }
    }

    /// Without an initializer: the macro writes it.
    @Model final class Line {
        var text: String
        var count = 1
        var receipt: Receipt?
    }

    static let types: [any PersistentModel.Type] = [Receipt.self, Line.self]
}

/// Sets of models without an annotation: their type alone says that they are relationships.
enum Choirs {
    @Model final class Choir {
        var name: String
        var singers: Set<Singer> = []
        /// Both ends of this many-to-many relationship are sets.
        var songs: Set<Song>
        var guests: Set<Guest>?
        /// A set of values, which is no relationship.
        var years: Set<Int> = []

        init(name: String, songs: Set<Song>) {
            self.name = name
            self.songs = songs
        }
    }

    @Model final class Singer {
        var name: String
        var choir: Choir?

        init(_ name: String) { self.name = name }
    }

    @Model final class Song {
        var title: String
        var choirs = Set<Choir>()

        init(_ title: String) { self.title = title }
    }

    /// Nothing leads back to the choir.
    @Model final class Guest {
        var name: String

        init(_ name: String) { self.name = name }
    }

    static let types: [any PersistentModel.Type] = [Choir.self, Singer.self, Song.self, Guest.self]
}

/// Folders within folders, and lists that name nothing but their values.
enum Lists {
    enum Status: String, Codable { case open, done }

    @Model final class Folder: Hidable {
        var name = "folder"
        var isHidden = false
        var parent: Folder?
        var children: [Folder]?
        var lists = [Errands]()
        @Transient var isOpen = false
        @Transient var path: String { (parent.map { $0.path + "/" } ?? "") + name }

        init(name: String, parent: Folder? = nil) {
            self.name = name
            self.parent = parent
        }
    }

    protocol Hidable {
        var isHidden: Bool { get set }
    }

    @Model class Errands {
        var status = Status.open
        var folder: Folder?
        var title = "errands"
        var _title = 7
        /// Two relationships lead to one model, so none has an inverse.
        var first: Folder?
        init() {}
    }

    static let types: [any PersistentModel.Type] = [Folder.self, Errands.self]
}

/// Relationships that all have `@Relationship`, and name no inverse.
enum Harbors {
    @Model final class Harbor {
        var name = "harbor"
        @Relationship(deleteRule: .cascade) var ships: [Ship] = []
        @Relationship var parent: Harbor?
        @Relationship var branches: [Harbor] = []
        /// Kept apart on purpose.
        @Relationship(inverse: nil) var cranes: [Crane] = []
        init() {}
    }

    @Model final class Ship {
        var name = "ship"
        @Relationship var harbor: Harbor?
        init() {}
    }

    @Model final class Crane {
        var load = 1
        @Relationship var harbor: Harbor?
        init() {}
    }

    static let types: [any PersistentModel.Type] = [Harbor.self, Ship.self, Crane.self]
}

/// Relationships to classes that the source names by aliases, as in programs with a schema per version.
enum Crates {
    typealias Item = CrateSchema.Part
    typealias Seal = CrateSchema.Stamp

    @Model final class Crate {
        var name: String
        @Relationship(deleteRule: .cascade, inverse: \Item.crate) var items: [Item]
        @Relationship(deleteRule: .cascade) var seal: Seal?
    }

    static let types: [any PersistentModel.Type] = [Crate.self, CrateSchema.Part.self, CrateSchema.Stamp.self]
}

enum CrateSchema {
    @Model final class Part {
        var number: Int
        var crate: Crates.Crate?
    }

    @Model final class Stamp {
        var text: String
    }
}

private struct Spot: Codable, Equatable { var page = 0 }

/// Private properties, of which the initializer of the macro has no parameters.
@Model final class Bookmark {
    var title: String
    private var spot: Spot?
    private var moves = 0

    func move(to page: Int) {
        spot = Spot(page: page)
        moves += 1
    }

    var summary: String { "\(title), page \(spot?.page ?? 0), moved \(moves) times" }
}

/// An object that its author passes between tasks at their own risk.
@Model final class Shared: @unchecked Sendable {
    var name = "shared"
    init() {}
}

/// A model whose relationship names its inverse in a class of another file, whose name comes later. In the other order, or in one file, the
/// compiler has found the conformances of that class before it needs them here.
@Model final class BookSet {
    var name = "set"
    @Relationship(inverse: \SetBook.owner) var books: Set<SetBook> = []
    init() {}
}

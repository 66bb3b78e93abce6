import Foundation
import Strata

/// Models whose properties have initial values that are no literals.
enum Records {
    enum Status: Int, Codable { case announced, released }
    enum Priority: Int, Codable { case low = 1, none }
    enum Currency: String, Codable, CaseIterable { case euro, krone }
    struct Settings: Codable, Equatable {
        var volume = 7
        var tags = ["a"]
    }

    @Model final class Single {
        var id = UUID()
        var added = Date.now
        @Attribute(.unique) var isrc: String
        var title = "untitled"
        var settings = Settings()
        var status = Status.released
        var priority: Priority = .none
        var currency: Currency = .krone
        var days: [Int] = [1, 2]
        var note: String?
        var shelf: RecordShelf?

        init(isrc: String) { self.isrc = isrc }
    }

    @Model final class RecordShelf {
        @Attribute(.unique) var name: String
        var singles: [Single] = []

        init(name: String) { self.name = name }
    }

    @Model class Release {
        @Attribute(.unique) var code: String
        var id = UUID()

        init(code: String) { self.code = code }
    }

    @Model final class Reissue: Release {
        var token = UUID()
        var year = 1999

        override init(code: String) { super.init(code: code) }
    }

    static let types: [any PersistentModel.Type] = [Single.self, RecordShelf.self, Release.self, Reissue.self]
}

/// Models whose relationships have initial objects.
enum Parcels {
    @Model final class Parcel {
        @Attribute(.unique) var code: String
        var sender: Sender? = Sender(name: "unknown")
        var stickers: [Sticker] = [Sticker(text: "new")]

        init(code: String) { self.code = code }
    }

    @Model final class Sender {
        @Attribute(.unique) var name: String
        init(name: String) { self.name = name }
    }

    @Model final class Sticker {
        @Attribute(.unique) var text: String
        init(text: String) { self.text = text }
    }

    static let types: [any PersistentModel.Type] = [Parcel.self, Sender.self, Sticker.self]
}

/// A model before and after properties with initial values were added.
enum WalletBefore {
    @Model final class Wallet {
        var name: String
        var limit: Int?
        var purpose: String?
    }
}

enum WalletAfter {
    enum Status: Int, Codable { case open, archived }
    enum Priority: Int, Codable { case low = 1, none }
    enum Currency: String, Codable, CaseIterable { case euro, krone }
    enum Limits { static let usual = 60 * 10 }
    struct Settings: Codable, Equatable {
        var color = "red"
        init(color: String = "red") { self.color = color }
    }

    @Model final class Wallet {
        var name: String
        var limit: Int = Limits.usual
        var purpose: String = "any \(1 + 1)"
        var status = Status.archived
        var other: Status = .archived
        var priority: Priority = .none
        var currency: Currency = Currency.krone
        var maybe: Currency? = .krone
        var settings = Settings(color: "blue")
        var list: [Settings] = [Settings(color: "green")]
        var tags: [String] = ["new"]
        var counts: [String: Int] = ["a": 1]
        var added = Date.now
        var token = UUID()
        var owners = [Owner]()
        var best: Owner?

        init(name: String) { self.name = name }
    }

    @Model final class Owner {
        var name: String
        init(name: String) { self.name = name }
    }
}

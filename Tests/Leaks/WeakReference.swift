// leak:formWeakReference
// Swift keeps the weak references to an object in a record beside it. Only the object refers to the record, by an address that
// is shifted. The sanitizer does not find such addresses.

final class Object: Sendable {}

struct Entry {
    weak var object: Object?
}

let object = Object()

@main struct Program {
    static func main() {
        var table = [1: Entry(object: object)]
        table = [:]
        print(table.count)
    }
}

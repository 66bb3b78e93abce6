// leak:once_slow
// Swift writes the case of an indirect enum into unused bits of the address of its values. The sanitizer does not find such
// addresses, here that in a global variable.

indirect enum Condition: Sendable {
    case isNil(String)
    case not(Condition)
    case all([Condition])
}

let condition = Condition.not(.isNil("title"))

@main struct Program {
    static func main() {
        print(condition)
    }
}

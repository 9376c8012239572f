"""Pairs of statements that say different things in nearly the same words, and honest rewordings.

An edit is written once: [a|b] stands for what is edited; in a role swap the two bracketed parts change places. The
guard was tuned on EDITS and REWORDINGS; the HELD_OUT ones were written later and never used for tuning.
"""

import re

_CHOICE = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")
_PART = re.compile(r"\[([^\]]*)\]")

EDITS: dict[str, str] = {
    "number": """
I have [two|three] children.
The team has [12|14] members.
Our rent is [1,200|1,300] euros a month.
My flight leaves from gate [22|32].
I take [20|40] mg of lisinopril every day.
The password policy requires [eight|twelve] characters.
We run [4|6] servers in production.
My sister is [31|37] years old.
I wake up at [6|7] every morning.
The budget for the project is [$50,000|$15,000].
Version [3.1|3.2] is the last one that supports Windows 7.
I need [five|six] copies of the contract.
We have room for [forty|fourteen] guests.
The recipe serves [4|8] people.
My goal is to read [24|52] books this year.
The meeting room is on the [second|third] floor.
She finished [first|second] in the race.
I drink [two|four] cups of coffee a day.
Our office is at [15|51] Main Street.
The API allows [100|1000] requests per minute.
My shoe size is [42|43].
The discount is [10%|20%] for members.
We sold [two hundred|three hundred] tickets.
I ran the half marathon in [1:45|1:54].
The warranty lasts [2|5] years.
My blood pressure was [120|130] over 80.
There are [seven|nine] people on my team.
The train takes [three|four] hours.
I was born in [1990|1991].
The car has [80,000|90,000] kilometres on it.
We release every [two|three] weeks.
I owe Tom [30|50] dollars.
The cache expires after [15|50] minutes.
My apartment number is [4B|5B].
The dog weighs [9|19] kilos.
Our company has [one|two] offices.
I have lived here for [ten|eleven] years.
The interest rate is [3.5|4.5] percent.
Set the thermostat to [19|21] degrees.
I have a [half|quarter] share in the boat.
I usually sleep [six|eight] hours a night.
My son is in [fourth|fifth] grade.
The timeout is [30|60] seconds.
Port [8080|8081] is used by the proxy.
""",
    "date": """
My project deadline is March [15|16].
The launch is planned for [May|June].
I have a dentist appointment on [Monday|Tuesday].
Our wedding is on [June 7|July 7].
The contract ends in [2025|2026].
My flight is [tomorrow|today] at noon.
We meet every [Thursday|Friday] for lunch.
My birthday is on [April 3|April 13].
The exam takes place in the [morning|afternoon].
Rent is due on the [first|fifth] of the month.
The conference is in [autumn|spring].
I go swimming on [Wednesdays|Saturdays].
The invoice was sent on [2024-03-01|2024-03-11].
School starts on [September 1|September 2].
We moved here in [August|October].
I started this job [last|next] year.
The call with Ann is at [3pm|4pm].
My mother visits us at [Christmas|Easter].
The store is closed on [Sundays|Mondays].
Deployment happens on Friday [evening|morning].
I see my therapist [weekly|monthly].
The release was moved to [Q2|Q3].
My passport expires in [January|February] 2027.
We celebrate on the [12th|20th] of December.
The trip is planned for [next|this] week.
I was hired on [1 March 2019|1 March 2020].
The board meets on the [second|third] Tuesday of the month.
The concert is on [Saturday|Sunday] night.
My vacation starts [July 10|July 20].
The subscription renews [yearly|monthly].
Taxes are due by the end of [April|May].
I will be in Oslo from [Monday|Wednesday] on.
The marathon is in [November|September].
The course runs until [10:30|11:30].
We have a stand-up [every day|every week].
The lease started in [winter|summer].
My surgery is scheduled for [November 4|November 14].
I take the pill in the [evening|morning].
Our anniversary is [October 9|October 19].
The sprint ends on [Tuesday|Thursday].
The bus leaves at [7:15|7:50] each day.
I go to bed at [midnight|noon] on weekends.
The delivery comes [tonight|tomorrow].
""",
    "name": """
My wife is called [Elena|Irina].
[Ann|Eve] is my manager.
I live in [Berlin|Hamburg].
I work at [Siemens|Bosch].
My dog's name is [Rex|Max].
We use [Postgres|MySQL] for the main database.
The project is called [Falcon|Osprey].
My best friend [Tom|Jim] lives next door.
I grew up in [Ghana|Nigeria].
I study at the University of [Zurich|Geneva].
My favourite author is [Le Guin|Asimov].
I fly with [Lufthansa|Ryanair] most of the time.
Our landlord is Mr [Baker|Becker].
[Priya|Divya] reviews my pull requests.
I drive a [Toyota|Honda].
The meeting is with [Acme|Globex].
My daughter [Mia|Lea] plays the violin.
I speak [Turkish|Arabic] at home.
We deploy on [AWS|Azure].
I bought the bike from [Carlos|Marco].
My doctor is Dr. [Lee|Kim].
The office in [Madrid|Lisbon] opens at nine.
[Sofia|Maria] is allergic to nuts.
Please send the report to [Karin|Katrin].
I support [Arsenal|Chelsea].
My brother moved to [Canada|Australia].
Our CTO is [Jonas|Lukas].
I write most code in [Python|Ruby].
We visited [Kyoto|Osaka] on our honeymoon.
My cat [Miso|Mochi] has diabetes.
The client is [Nordea|Danske].
My son goes to [Lincoln|Jefferson] High School.
I met [Peter|Paul] at a conference.
The keys are with [Olga|Anna].
I use [Firefox|Chrome] as my browser.
[Omar|Amir] taught me to cook.
Our supplier is based in [Poland|Czechia].
My phone is a [Samsung|Nokia].
I read the [Guardian|Times] every morning.
[David|Daniel] is the godfather of my son.
I bank with [Barclays|HSBC].
My hometown is [Porto|Braga].
""",
    "negation": """
I [like|don't like] spicy food.
I am [|not ]allergic to penicillin.
We [use|do not use] Kubernetes in production.
My sister [eats|never eats] meat.
I [can|can't] swim.
The office is [|not ]open on Saturdays.
I [have|have no] siblings.
She [will|won't] join the call.
Our app [supports|does not support] dark mode.
I [drink|don't drink] alcohol.
The contract is [|not ]signed.
I [want|don't want] to be called before nine.
My parents are [|not ]retired.
Tom is [|not ]coming to the party.
The data is [|not ]encrypted at rest.
I have [|never ]been to Japan.
We [|no longer ]work with that supplier.
I work on weekends[| no longer].
The API [requires|doesn't require] a key.
I [trust|don't trust] the new vendor.
My car is [|not ]insured.
Please [|do not ]send me reminders by email.
[Everybody|Nobody] on my team speaks German.
I do yoga with[|out] my wife.
He was [|not ]promoted last year.
I [own|don't own] a car.
The tests are [|not ]run on every commit.
We [decided|decided not] to hire a contractor.
I [smoke|used to smoke].
My landlord [allows|doesn't allow] pets.
I am [|not ]a morning person.
The feature is [|not ]ready for release.
I [eat|stopped eating] gluten.
I've [|never ]worked with Rust.
My kids [go|don't go] to a private school.
There is [|no ]parking at the office.
The medication [helps|doesn't help] against my migraine.
I have [some|no] experience with React.
Our team [likes|doesn't like] long meetings.
I [ever|never] answer calls at night.
The cat is [|not ]vaccinated.
Ann is [|hardly ]involved in the project.
""",
    "antonym": """
My [left|right] knee hurts when I run.
I [love|hate] cilantro.
The feature flag is [enabled|disabled].
I am [vegan|vegetarian].
I prefer [window|aisle] seats.
We want to [increase|decrease] the budget.
My flat is on the [top|bottom] floor.
I like my coffee [hot|cold].
The repository is [public|private].
I work the [day|night] shift.
She is my [older|younger] sister.
He is [married|single].
The meeting was [productive|unproductive].
Please keep answers [short|long].
I usually arrive [early|late].
The museum is [free|expensive] for students.
I am an [introvert|extrovert].
Our office is [north|south] of the river.
I always [accept|decline] meetings without an agenda.
The new phone is [better|worse] than the old one.
I [agree|disagree] with the plan.
We rent a [furnished|unfurnished] apartment.
The door should stay [open|closed].
I like [sweet|sour] apples.
My father is [alive|dead].
I find the course [easy|difficult].
We shipped the [first|last] version of the app.
The stock price will [rise|fall].
I [buy|sell] used books.
Our team is [strong|weak] in design.
Turn the notifications [on|off].
I sleep [well|badly] on planes.
My boss is very [patient|impatient].
Please write in a [formal|informal] tone.
The water in the lake is [warm|cool].
This is a [temporary|permanent] position.
My hair is [curly|straight].
I [remember|forget] names easily.
The road is [safe|dangerous] for cyclists.
My desk is [tidy|messy].
The patch is [optional|mandatory].
I work [full-time|part-time].
The room is [quiet|noisy].
I [passed|failed] the driving test.
""",
    "role swap": """
[Ann] helps [Bob] with the accounts.
[My manager] reports to [my colleague].
[Tom] lent money to [Eva].
[The dog] chased [the cat] around the garden.
I prefer [tea] over [coffee].
[Maria] is taller than [Julia].
We moved from [Paris] to [Rome].
[Sam] taught [Kim] how to drive.
[Acme] bought [Globex] last year.
[My sister] gave [my brother] a guitar.
The [frontend] calls the [backend].
[Arsenal] beat [Chelsea] in the final.
[Peter] introduced me to [Laura].
[The client] owes [the vendor] an apology.
I would rather [cook] than [clean].
[Omar] is married to the sister of [Nina].
[The teacher] praised [the student].
We replaced [MySQL] with [Postgres].
[Lena] sold her bike to [Paul].
[My mother] drives [my father] to work.
[Jack] invited [Jill] to the party.
I translate from [German] to [French].
[The nurse] called [the doctor].
[Ben] lives with the parents of [Zoe].
[Ivan] works for [Olga].
I like [dogs] more than [cats].
[Lucy] reviews the code of [Mark].
[The landlord] sued [the tenant].
[Carla] babysits for [Diana].
The [mobile] team depends on the [platform] team.
[Nora] trusts [Felix].
[My wife] married [my best friend]'s cousin.
[Rita] was hired by [Hans].
[The server] sends a request to [the client].
[Bob] borrowed a drill from [Alice].
[Kenya] exports flowers to [Holland].
[Jonas] followed [Emil] to Berlin.
I read [fiction] instead of [news].
[Grandma] looks after [Mia] on Fridays.
[Tim] is the boss of [Ron].
[The cat] is afraid of [the dog].
[Hugo] forgave [Leo].
""",
    "unit": """
I run 5 [kilometres|miles] every day.
The package weighs 3 [kg|pounds].
The tank holds 50 [litres|gallons].
My commute takes 40 [minutes|hours].
The table is 2 [metres|feet] long.
The fee is 20 [dollars|euros].
The oven should be at 200 [Celsius|Fahrenheit].
I take 5 [mg|ml] of the syrup.
The file is 30 [MB|GB].
The trial lasts 14 [days|weeks].
The ribbon is 10 [cm|inches] wide.
The drive has 2 [TB|GB] of space.
The plot is 300 [square metres|square feet].
We pay [$500|€500] for hosting.
The response time is 80 [milliseconds|seconds].
The sprint lasts 2 [weeks|months].
I lost 6 [kilos|pounds] this year.
The speed limit is 60 [km/h|mph].
Add 2 [tablespoons|teaspoons] of sugar.
The contract runs for 3 [years|months].
The pool is 25 [metres|yards] long.
My salary is 60,000 [dollars|pounds] a year.
The battery lasts 10 [hours|days].
The lamp uses 9 [watts|volts].
The meeting takes 45 [minutes|seconds].
We need 4 [cups|ounces] of flour.
It is 30 [degrees|percent] outside.
The parcel arrives in 2 [days|hours].
I walk 3 [miles|kilometres] to work.
The tumour was 4 [mm|cm] in size.
The visa is valid for 90 [days|months].
The rope is 12 [feet|metres] long.
My rent is 900 [euros|pounds].
He is 6 [feet|metres] tall.
Bake the bread for 50 [minutes|seconds].
The bag holds 20 [kg|litres].
The log grows by 5 [GB|MB] a day.
I sleep 7 [hours|minutes] a night.
The dose is 50 [micrograms|milligrams].
The rate is 2 [dollars|cents] a page.
We waited 3 [hours|days] for the bus.
""",
    "before and after": """
I take my pill [before|after] breakfast.
Call me [before|after] 5 pm.
We deploy [before|after] the code freeze.
I go running [before|after] work.
Tom arrived [before|after] Ann.
Please send the slides [before|after] the meeting.
I studied law [before|after] my military service.
Run the linter [before|after] the tests.
We moved to Lyon [before|after] our son was born.
I drink coffee [before|after] lunch.
The bakery is [before|after] the bridge.
He retired [before|after] the merger.
Back up the database [before|after] the migration.
I read [before|after] going to sleep.
My appointment is [before|after] Easter.
She joined the company [before|after] me.
Pay the invoice [before|after] delivery.
I brush my teeth [before|after] dinner.
We must finish [before|after] Friday.
The review happens [before|after] the merge.
I stretch [before|after] every run.
Do not eat [before|after] the blood test.
The party starts [before|after] sunset.
I call my mother [before|after] church.
The warranty starts [before|after] the installation.
We had a dog [before|after] the children came.
I check email [before|after] ten o'clock.
Turn off the power [before|after] opening the case.
The refund is paid [before|after] the return.
I lived in Peru [before|after] college.
The demo comes [before|after] the keynote.
Water the plants [before|after] sunrise.
I was a chef [before|after] I became a teacher.
The train leaves [before|after] midnight.
I take a shower [before|after] the gym.
Validate the form [before|after] saving.
We bought the house [before|after] the wedding.
Feed the cat [before|after] noon.
I do the shopping [before|after] school pickup.
The bonus is paid [before|after] taxes.
Ann speaks [before|after] Bob at the event.
""",
    "other value": """
My car is [red|blue].
I play the [piano|guitar].
My daughter wants to become a [pilot|doctor].
I am allergic to [peanuts|shellfish].
My favourite season is [autumn|spring].
I commute by [bike|train].
Our logo is [green|orange].
I have a [cat|dog].
I study [biology|chemistry].
My husband is a [teacher|plumber].
I prefer [Italian|Indian] food.
We keep the spare key under the [mat|flowerpot].
The app is written in [Go|Rust].
I collect [stamps|coins].
My mother has [diabetes|asthma].
I usually order [pizza|sushi] on Fridays.
I am learning the [violin|cello].
The kitchen needs new [tiles|cabinets].
I like to read [novels|biographies].
The meeting is held in the [library|cafeteria].
I use the [dark|light] theme.
My son plays [football|basketball].
We sleep in a [tent|caravan] when we travel.
I drink my tea with [milk|lemon].
The team works [remotely|on site].
I wear [contact lenses|glasses].
The garden needs [water|fertiliser].
I broke my [arm|leg] last year.
My brother is a [vegan|butcher].
The wedding will be at the [beach|farm].
I work in the [marketing|finance] department.
The backup runs on the [primary|replica] node.
My desk is made of [oak|pine].
I take the [bus|tram] to school.
Our house has a [flat|gabled] roof.
I answer mail in the [office|kitchen].
We use [tabs|spaces] for indentation.
My aunt sells [flowers|cheese] at the market.
I am afraid of [spiders|heights].
The interview is by [phone|video].
""",
}

REWORDINGS = """
I am vegetarian. / I'm a vegetarian.
I'm allergic to peanuts. / I have a peanut allergy.
My project deadline is March 15. / The deadline of my project is March 15th.
I live in Berlin. / I reside in Berlin.
We decided to use Postgres. / We have decided to use PostgreSQL.
My wife is called Elena. / My wife's name is Elena.
I have two children. / I have 2 kids.
I prefer tea over coffee. / I like tea better than coffee.
I don't eat meat. / I never eat meat.
On Mondays I go swimming. / I go swimming on Mondays.
The report was written by Ann. / Ann wrote the report.
I work as a nurse at the city hospital. / I'm a nurse and work at the city hospital.
The meeting is at 3pm. / The meeting is at 15:00.
My favorite color is blue. / Blue is my favourite colour.
User prefers short answers. / I prefer brief answers.
I go running every week. / I go for a run weekly.
My dog is called Rex. / I have a dog called Rex.
Our office is in Madrid. / Our office is located in Madrid.
I was born in 1990. / I am born in 1990.
Please always answer in French. / Always reply in French, please.
I can't stand horror movies. / I can't stand horror films.
My sister lives in Toronto. / My sister is living in Toronto.
I take the train to work. / I go to work by train.
I'd like to learn Japanese. / I want to learn Japanese.
We ship a new version every Friday. / Every Friday we ship a new version.
The budget is 50,000 dollars. / The budget is $50,000.
I'm getting married in June. / I am getting married in June.
I hate cilantro. / I really hate cilantro.
My car is a red Toyota. / I drive a red Toyota.
I don't drink alcohol. / I do not drink alcohol.
Tom is my brother. / My brother is Tom.
I have a cat named Miso. / My cat is named Miso.
The launch is on May 3. / The launch is May 3rd.
Our backend is written in Go. / Our backend is in Go.
I'm a software engineer. / I work as a software engineer.
I usually wake up at six. / I usually get up at 6.
I'm scared of spiders. / I am afraid of spiders.
I enjoy hiking in the Alps. / I like to hike in the Alps.
My daughter plays the violin. / My daughter is playing violin.
We meet every Thursday for lunch. / We have lunch together every Thursday.
I moved to Lisbon in 2019. / In 2019 I moved to Lisbon.
I need a wheelchair-accessible hotel. / I require a hotel that is wheelchair accessible.
The API key is rotated every month. / The API key is rotated monthly.
I use Firefox as my browser. / My browser is Firefox.
My goal is to run a marathon. / My aim is to run a marathon.
The team has twelve members. / There are 12 members on the team.
My manager is Karin. / Karin is my manager.
I study biology in Zurich. / I'm studying biology in Zurich.
I've never been to Japan. / I have never been to Japan.
Don't call me before nine. / Please do not call me before 9.
The store is closed on Sundays. / On Sundays the store is closed.
My flight leaves at noon tomorrow. / Tomorrow my flight leaves at noon.
I play chess on Thursdays. / Thursdays I play chess.
I speak Turkish and Dutch. / I speak Dutch and Turkish.
My parents are both retired. / Both of my parents are retired.
I own an electric car. / I have an electric car.
We are building an app for beekeepers. / We're building a beekeepers' app.
The contract was signed by Omar. / Omar signed the contract.
I'm on a gluten-free diet. / I follow a gluten-free diet.
My doctor is Dr. Lee. / Dr. Lee is my doctor.
I like my coffee black. / I drink my coffee black.
My phone is broken and I need a new one. / I need a new phone because mine is broken.
I'm interested in photography. / I am interested in photography as a hobby.
The deadline was moved to Friday. / The deadline has been moved to Friday.
I'm teaching my son to swim. / I teach my son how to swim.
I prefer window seats on flights. / On flights I prefer window seats.
My landlord doesn't allow pets. / Pets are not allowed by my landlord.
We use Slack for communication. / We communicate using Slack.
I usually work from home. / I generally work from home.
I want answers with code examples. / Please give answers with code examples.
My son is allergic to bees. / My son has an allergy to bees.
My birthday is on April 3. / I was born on April 3.
I have been a teacher for ten years. / I've been a teacher for 10 years.
The meeting takes place in room 5. / The meeting is in room 5.
I live with my girlfriend. / My girlfriend and I live together.
The project is called Falcon. / The name of the project is Falcon.
I'm training for a half marathon. / I am currently training for a half marathon.
My mother has diabetes. / My mom has diabetes.
I quit smoking last year. / Last year I stopped smoking.
I'm not a morning person. / I am no morning person.
We're hiring two designers. / We are looking to hire two designers.
My laptop runs Linux. / I run Linux on my laptop.
I bought a house in Porto. / I purchased a house in Porto.
The tests run on every commit. / Tests are run for each commit.
My team is spread over three time zones. / My team is spread across 3 time zones.
I have a meeting with Acme on Tuesday. / On Tuesday I have a meeting with Acme.
I love spicy food. / I love food that is spicy.
Use metric units, please. / Please use metric units.
My favourite author is Ursula Le Guin. / Ursula Le Guin is my favourite author.
I work night shifts. / I work the night shift.
Our customers are mostly small farms. / Most of our customers are small farms.
I take my coffee without sugar. / I drink coffee without sugar.
I'm saving for a trip to Peru. / I am saving money for a trip to Peru.
The garden needs watering every day. / The garden has to be watered daily.
I grew up on a farm in Ghana. / I was raised on a farm in Ghana.
I have trouble sleeping. / I have difficulty sleeping.
My shoe size is 42. / I wear size 42 shoes.
I can't eat dairy. / I cannot eat dairy products.
I am the CTO of a small bank. / I'm CTO at a small bank.
We deploy on AWS. / We deploy to AWS.
I read a lot of science fiction. / I read lots of science fiction.
I'm the oldest of four siblings. / I am the oldest of 4 siblings.
My husband cooks dinner every evening. / Every evening my husband cooks dinner.
I'd rather be contacted by email. / I prefer to be contacted by e-mail.
The invoice was sent on March 1. / The invoice was sent March 1st.
I have a fear of flying. / I am afraid of flying.
The wifi at the cabin is slow. / The cabin's wifi is slow.
I'm responsible for the billing service. / I am in charge of the billing service.
My grandmother taught me to knit. / I was taught to knit by my grandmother.
I work part-time at a bakery. / I work at a bakery part-time.
My daughter starts school in September. / In September my daughter starts school.
Our main competitor is Globex. / Globex is our main competitor.
Keep your answers under five sentences. / Keep answers below 5 sentences.
We chose Vue for the frontend. / For the frontend we chose Vue.
My roommate is a musician. / My roommate is a professional musician by trade.
I get migraines from red wine. / Red wine gives me migraines.
I have lived in Oslo since 2015. / I've been living in Oslo since 2015.
The kids go to bed at eight. / The children go to bed at 8.
My uncle owns a vineyard. / My uncle has a vineyard.
I do yoga every morning. / Every morning I do yoga.
I want to lose five kilos. / I want to lose 5 kg.
The dentist appointment is on Monday at 9. / The dentist appointment is Monday at 9 am.
Our anniversary is October 9. / Our anniversary is on the 9th of October.
We have three cats. / We own three cats.
I'm writing a novel about whales. / I am writing a book about whales, a novel.
I commute by bike. / I commute by bicycle.
Please don't use emojis. / Don't use any emojis please.
My brother works as a chef in Lyon. / My brother is a chef in Lyon.
The release is scheduled for next week. / The release is planned for next week.
I like jazz a lot. / I like jazz very much.
"""


HELD_OUT_EDITS = """
The customer success team in Dublin handles [seventeen|seventy] enterprise accounts this quarter.
Sarah's onboarding plan covers her first [30|90] days in the finance department.
The greenhouse heating switches on when the temperature drops below [five|nine] degrees.
Each participant in the study receives [three|four] doses of the vaccine over six months.
Our seed round closed at [$1.5 million|$2.5 million] with two lead investors.
The board approved a hiring plan for [eleven|twelve] backend engineers.
User's physiotherapy sessions are every [Tuesday|Wednesday] at the clinic on Mill Road.
The security audit of the billing system starts on [14|24] October.
The lease on the warehouse in Leeds runs out at the end of [June|July].
Grandpa's hip operation has been put on the calendar for [next Monday|next Friday].
The quarterly report must reach the auditors by [noon|midnight].
User wants a reminder about the car inspection in [February|November].
The architect in charge of the renovation is [Helena|Hannah] Fischer.
User's first job after university was at [Ericsson|Nokia] in Stockholm.
[Marta|Greta] takes care of the user's plants during holidays.
The hiking group meets at the car park in [Keswick|Ambleside].
User's insurance for the boat is with [Allianz|Generali].
The migration to the new CRM will [|not ]include archived contacts.
User has [|never ]signed a non-disclosure agreement with the supplier.
User's daughter is [|not ]allowed to play video games on school nights.
The staging environment [uses|doesn't use] real customer data.
[All|None] of the chairs in the conference room were replaced in spring.
User's grandfather served in the navy and [|no longer ]likes to talk about it.
User's landlord has [raised|lowered] the rent for the flat.
User considers the new travel policy [fair|unfair].
The pharmacy near the station is [open|closed] on public holidays.
User wants the summary emails to be [brief|detailed].
The upstairs bathroom tap supplies only [cold|hot] water.
The app's map view should be [visible|hidden] by default.
User was [hired|fired] by the museum in spring.
[The architect] sent the revised drawings to [the contractor] for comments.
[Mia] is going to inherit the piano from [Sophie].
The union accuses [the airline] of misleading [the pilots].
User thinks [Lisbon] is a better place to live than [Madrid].
[The auditor] asked [the accountant] for the missing invoices.
The ferry takes cars from [Calais] to [Dover] twice a day.
The new shelf in the garage can carry 80 [kilograms|pounds].
The allotment is about 200 square [metres|feet].
User's inhaler has to be replaced every 6 [weeks|months].
The backup tape stores 12 [terabytes|gigabytes].
The physio told the user to stretch [before|after] cycling.
The caterer has to be paid [before|after] the reception.
Coupons are applied [before|after] shipping is added to the order.
User moved in with Paula [before|after] finishing the degree.
"""

HELD_OUT_REWORDINGS = """
User is a vegetarian. / The user is vegetarian.
User has a daughter named Clara who is six. / User has a six-year-old daughter called Clara.
The quarterly report is due on Friday. / The quarterly report has to be in by Friday.
User dislikes early morning meetings. / User doesn't like early morning meetings.
The team agreed to drop support for Python 3.8. / The team has agreed to drop Python 3.8 support.
User's flight to Boston leaves at 6 pm. / The user's flight to Boston departs at 6 pm.
User lives in a small flat in Leeds. / User lives in a small apartment in Leeds.
User would like replies in Spanish. / User wants replies in Spanish.
Helena Fischer is the architect of the renovation. / The architect for the renovation is Helena Fischer.
User is learning to play the cello. / User is learning how to play the cello.
The kitchen will be renovated in March. / In March the kitchen will be renovated.
User's boss is on parental leave until May. / User's manager is on parental leave until May.
User enjoys long walks with the dog. / User likes going on long walks with the dog.
We store all backups in Frankfurt. / All of our backups are stored in Frankfurt.
The client pays within thirty days. / The client pays within 30 days.
User's laptop is a ThinkPad. / The user's laptop is a ThinkPad.
I have high blood pressure. / I've got high blood pressure.
My wife and I are expecting a baby in August. / My wife and I are having a baby in August.
I'm the treasurer of our chess club. / I am treasurer of the chess club.
I volunteer at the animal shelter on Sundays. / On Sundays, I volunteer at the animal shelter.
My car insurance renews in November. / My car insurance is renewed in November.
I have to take the medicine twice a day. / I need to take the medicine two times a day.
The novel I'm writing is set in Iceland. / I'm writing a novel that is set in Iceland.
Our standup is at 9:30. / Our daily standup is at 9:30 am.
The roof was repaired by my uncle. / My uncle repaired the roof.
I bake sourdough bread every weekend. / Every weekend I bake sourdough bread.
My favourite restaurant is Da Enzo. / Da Enzo is my favourite restaurant.
I don't own a television. / I do not have a television.
I'm studying for the bar exam. / I am currently studying for the bar exam.
Tests must pass before a merge. / The tests have to pass before a merge.
I'm planning a trip to Norway with Ida. / I am planning to take a trip to Norway with Ida.
My grandmother's maiden name is Rossi. / The maiden name of my grandmother is Rossi.
The office has moved to the third floor. / The office moved to the 3rd floor.
I usually buy groceries at the farmers market. / I typically purchase groceries at the farmers market.
Call me by my middle name, Alex. / Please call me Alex, my middle name.
I speak German fluently. / I am fluent in German.
The pool is closed for maintenance. / The pool is closed because of maintenance.
I hope to retire in Portugal. / I would like to retire in Portugal.
My son hates broccoli. / My son can't stand broccoli.
I keep my notes in Obsidian. / I use Obsidian to keep my notes.
"""


def held_out() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the edits and the rewordings that the guard was not tuned on."""
    lines = HELD_OUT_EDITS.strip().splitlines()
    return [_edit(line, swap="|" not in line) for line in lines], _pairs(HELD_OUT_REWORDINGS)


def edits(kind: str) -> list[tuple[str, str]]:
    """Return all pairs of one kind of edit."""
    return [_edit(line, swap=kind == "role swap") for line in EDITS[kind].strip().splitlines()]


def rewordings() -> list[tuple[str, str]]:
    return _pairs(REWORDINGS)


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(a, b) for a, b in (line.split(" / ") for line in text.strip().splitlines())]


def _edit(line: str, *, swap: bool) -> tuple[str, str]:
    if not swap:
        pair = _CHOICE.sub(r"\1", line), _CHOICE.sub(r"\2", line)
    else:
        first, second = _PART.findall(line)
        parts = iter((second, first))
        pair = _PART.sub(r"\1", line), _PART.sub(lambda _: next(parts), line)
    return _sentence(pair[0]), _sentence(pair[1])


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    for article in ("The ", "My "):  # a swapped part at the beginning
        head, rest = text[:4], text[4:]
        text = head + rest.replace(f" {article}", f" {article.lower()}")
    return text[0].upper() + text[1:]
